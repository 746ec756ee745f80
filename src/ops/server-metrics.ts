/** The metrics of a server for prom-client, for services that are not this one: one listener for each kind of events. */
export { type CountedMethod, createIdempotencyMetrics } from './idempotency-metrics';
export { createRetentionMetrics } from './retention-metrics';
