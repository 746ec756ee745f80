import { Counter, Gauge, Registry } from 'prom-client';
import type { ServerEventListener } from '../idempotency/index';
import { createIdempotencyMetrics, type CountedMethod } from './idempotency-metrics';

/** What the metrics of one process are about. */
export interface MetricsOptions {
  /** Version of the service, for `build_info`. */
  readonly version: string;
  /** The served methods; those that take no key get no series. */
  readonly policies: readonly CountedMethod[];
  /** What mismatches are counted by; what no client of these sends is `other`. Default: none. */
  readonly clientVersions?: readonly string[];
}

/** The metrics of one process. */
export interface Metrics {
  /** Holds every series; belongs to these metrics alone. */
  readonly registry: Registry;
  /** Turns what the library tells into series. */
  readonly onServerEvent: ServerEventListener;
  /** Counts a payment once its row is committed. */
  readonly onPaymentCreated: () => void;
}

/** Creates the metrics of design 3.4 on a registry of their own, with every series at 0 (case M2). */
export function createMetrics({ version, policies, clientVersions }: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const build = new Gauge({ name: 'build_info', help: 'Always 1.', labelNames: ['version'], registers });
  build.set({ version }, 1);
  const payments = new Counter({
    name: 'payments_created_total',
    help: 'Payments whose row was committed.',
    registers,
  });
  return {
    registry,
    onServerEvent: createIdempotencyMetrics(registry, policies, clientVersions),
    onPaymentCreated: () => payments.inc(),
  };
}
