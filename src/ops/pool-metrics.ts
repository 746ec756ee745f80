import { Histogram, type Registry } from 'prom-client';

/** Up to what a statement waits before it fails, seconds. */
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

/**
 * Creates `idempotency_pool_wait_seconds{pool}`: waits for a connection of a pool whose connections were all in use (design
 * 3.4). What finds one free is not counted, so its count is how often a pool was too small.
 *
 * @returns what to tell of a wait, in milliseconds
 */
export function createPoolMetrics(
  registry: Registry,
  pools: readonly string[],
): (pool: string, waitedMs: number) => void {
  const waits = new Histogram({
    ...{ name: 'idempotency_pool_wait_seconds', labelNames: ['pool'], buckets: BUCKETS, registers: [registry] },
    help: 'Waits for a database connection while all of the pool were in use.',
  });
  for (const pool of pools) waits.zero({ pool });
  return (pool, waitedMs) => waits.observe({ pool }, waitedMs / 1_000);
}
