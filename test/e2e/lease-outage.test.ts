import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { deferred, type Deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import type { StockCall } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';
import { until } from '../support/until';

const LEASE_MS = 1_200;

describe('a store that gives no answer while attempts run (design 4.7, case B4)', () => {
  let service: AttemptService;
  let proxy: CommitProxy;
  let running: Deferred<void>;
  let goOn: Deferred<void>;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { leaseMs: LEASE_MS, maxExecutionMs: 30 * LEASE_MS },
      // One connection each: whoever waits on it holds all others up.
      pools: { businessPoolSize: 1, storePoolSize: 1 },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    running = deferred();
    goOn = deferred();
    runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        running.resolve();
        await goOn.promise;
        return payAndComplete(request, attempt);
      },
    });
  });

  afterAll(async () => {
    await service.stop();
    proxy.close();
  });

  const newCall = (): StockCall => {
    const requestId = randomUUID();
    return { method: 'CreatePayment', request: paymentRequest({ order_id: `order-${requestId}` }), requestId };
  };

  const results = () => service.events.flatMap((event) => (event.type === 'renewal' ? [event.result] : []));
  const renewedAfter = (count: number) => results().slice(count).includes('renewed');

  /** Falls silent for a while from the first renewal that fails on. */
  const freezeFor = async (ms: number): Promise<void> => {
    const thaw = proxy.freeze();
    await until('a renewal has failed', async () => results().includes('failed'));
    await delay(ms);
    thaw();
  };

  it('for less than a lease: the attempt keeps its key, and is renewed as soon as it can be', async () => {
    const pay = newCall();
    const first = service.client.call(pay);
    await running.promise;
    await freezeFor(0);
    const failed = results().length;
    await until('it is renewed again', async () => renewedAfter(failed));
    await delay(LEASE_MS);
    expect((await service.client.call(pay)).error.reason).toBe('REQUEST_IN_PROGRESS');
    goOn.resolve();

    expect((await first).code).toBe(status.OK);
    expect(runs).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: '1 leases could not be renewed' }),
    );
  });

  it('for longer than a lease, and nobody has taken its key: the attempt gets it back and completes once', async () => {
    const pay = newCall();
    const first = service.client.call(pay);
    await running.promise;
    await freezeFor(1.5 * LEASE_MS);
    const failed = results().length;
    await until('it is renewed again', async () => renewedAfter(failed));
    expect((await service.client.call(pay)).error.reason).toBe('REQUEST_IN_PROGRESS');
    goOn.resolve();

    expect((await first).code).toBe(status.OK);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('for longer than a lease, and somebody has taken its key: it is told, and changes nothing', async () => {
    const first = service.client.call(newCall());
    await running.promise;
    const thaw = proxy.freeze();
    await until('the lease is over', async () => (await service.database.count(EXPIRED)) === 1);
    await service.database.rows(
      `UPDATE idempotency_record SET owner_token = gen_random_uuid(), attempt = 2, lease_until = now() + interval '1 hour'`,
    );
    thaw();
    await until('the loss is known', async () => results().includes('lost'));
    goOn.resolve();

    expect(await first).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(await service.database.count('payments')).toBe(0);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'claimed', attempt: 2 });
  });

  it('that cuts its connections: the next renewal has a new one', async () => {
    const first = service.client.call(newCall());
    await running.promise;
    for (let cut = 0; cut < 3; cut += 1) {
      await service.database.rows(`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name LIKE 'grpc-idempotency %' AND datname = current_database()`);
      const before = results().length;
      await until('it is renewed again', async () => renewedAfter(before));
    }
    goOn.resolve();

    expect((await first).code).toBe(status.OK);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('while new calls come: none of them runs, and when it is back each of them runs once', async () => {
    goOn.resolve();
    const calls = Array.from({ length: 20 }, newCall);
    const thaw = proxy.freeze();
    const answers = await Promise.all(calls.map((pay) => service.client.call({ ...pay, deadlineMs: 1_000 })));
    for (const { code } of answers) expect([status.UNAVAILABLE, status.DEADLINE_EXCEEDED]).toContain(code);
    expect(runs).toBe(0);
    thaw();

    const retried = await Promise.all(calls.map((pay) => callUntilAnswered(service.client, pay)));
    for (const { answer } of retried) expect(answer.code).toBe(status.OK);
    // One that waits too long for the only connection is rolled back, and runs anew.
    expect(runs).toBeGreaterThanOrEqual(calls.length);
    expect(await service.database.count('(SELECT DISTINCT order_id FROM payments) AS orders')).toBe(calls.length);
    expect(await service.database.count('payments')).toBe(calls.length);
    expect(await service.database.count("idempotency_record WHERE state = 'completed'")).toBe(calls.length);
  });
});

const EXPIRED = "idempotency_record WHERE state = 'claimed' AND lease_until < now()";
