import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { connect, type Database } from '../../src/database/connect';
import { runRetention } from '../../src/idempotency/index';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';

const EXPIRED = 50_000;
const CALLS_PER_SECOND = 50;
const WINDOW_MS = 1_000;
/** How often it may be measured: what else the machine does can slow one measurement, a sweep that stalls calls slows all. */
const MOST_MEASUREMENTS = 3;

describe(`a sweep of ${EXPIRED} undated records, while ${CALLS_PER_SECOND} calls a second run (case I1)`, () => {
  let database: TestDatabase;
  let service: TestService;
  let client: StockClient;
  let maintainer: Database;

  beforeAll(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    // The service's own first round is left nothing to do; the next one comes in an hour.
    await database.rows(`UPDATE idempotency_maintenance SET held_until = now() + interval '1 hour'`);
    service = await startTestService({ connectionString });
    client = createStockClient(service.grpcPort);
    maintainer = connect({ connectionString });
    const isPast = async () => !(await service.metrics()).includes('idempotency_partitions 0');
    await until("the service's first round is past", isPast);
    await database.rows('UPDATE idempotency_maintenance SET held_until = now()');
  });

  afterAll(async () => {
    client.close();
    await service.stop();
    await maintainer.close();
    await database.drop();
  });

  const expireMany = async (): Promise<void> => {
    await database.rows(
      `INSERT INTO idempotency_record
         (created_at, lease_until, completed_at, bucket, attempt, method, status_code, id, owner_token, state,
          fingerprint, scope, request_id, instance, response)
       SELECT now() - interval '400 days' + nth * interval '1 second', now() - interval '399 days', now(), '1970-01-01', 1,
         method.id, 0, gen_random_uuid(), gen_random_uuid(), 'completed', '\\x0101', 'account-1',
         gen_random_uuid()::text, 'somewhere', repeat('x', 200)::bytea
       FROM generate_series(1, ${EXPIRED}) AS nth, idempotency_method AS method
       WHERE method.path = '/payments.v1.PaymentsService/CreatePayment'`,
    );
    await database.rows('ANALYZE idempotency_record');
  };

  /** Calls at an even pace, whatever the answers take; how long each took, milliseconds. */
  const callFor = async (durationMs: number): Promise<number[]> => {
    const calls: Promise<number>[] = [];
    const startedAt = performance.now();
    for (let dueMs = 0; dueMs < durationMs; dueMs += 1_000 / CALLS_PER_SECOND) {
      await delay(Math.max(0, startedAt + dueMs - performance.now()));
      calls.push(payAndMeasure());
    }
    return Promise.all(calls);
  };

  const payAndMeasure = async (): Promise<number> => {
    const startedAt = performance.now();
    const answer = await client.call({ method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() });
    expect(answer.code).toBe(status.OK);
    return performance.now() - startedAt;
  };

  /** How much slower the slowest hundredth of the calls is during a sweep. */
  const measure = async (): Promise<number> => {
    await expireMany();
    const calm: number[] = [];
    const swept: number[] = [];
    let purged = 0;
    // In turns, so that whatever else the machine does slows both alike.
    while (purged < EXPIRED) {
      calm.push(...(await callFor(WINDOW_MS)));
      const stopping = new AbortController();
      const sweep = runRetention({ client: maintainer.maintenance, signal: stopping.signal });
      swept.push(...(await callFor(WINDOW_MS)));
      stopping.abort();
      const report = await sweep;
      expect(report).toMatchObject({ elected: true, faults: [] });
      expect(report.purged).toBeGreaterThan(0);
      purged += report.purged;
    }
    expect(purged).toBe(EXPIRED);
    return p99(swept) / p99(calm);
  };

  it('leaves the slowest hundredth of them less than twice as slow, and nobody meets a deadlock', async () => {
    await callFor(WINDOW_MS);
    const ratios: number[] = [];
    while (ratios.length < MOST_MEASUREMENTS && !ratios.some((ratio) => ratio < 2)) ratios.push(await measure());
    expect(Math.min(...ratios)).toBeLessThan(2);
    const deadlocks = 'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()';
    expect(await database.rows(deadlocks)).toEqual([{ deadlocks: 0 }]);
    expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(await database.count('payments'));
  }, 120_000);
});

function p99(latencies: readonly number[]): number {
  const sorted = [...latencies].sort((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? NaN;
}
