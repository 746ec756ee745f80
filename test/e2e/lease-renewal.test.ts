import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { ClaimLostError, StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { aborted } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';

/** Long enough for a busy machine to renew it in time, short enough to wait for three of them. */
const LEASE_MS = 1_500;

describe('an attempt that runs longer than its lease (design 4.7)', () => {
  let service: AttemptService;
  /** How many leases each renewal statement was for. */
  const renewals: number[] = [];

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { leaseMs: LEASE_MS, maxExecutionMs: 20 * LEASE_MS },
      wrapStore: (store) => ({
        ...store,
        renewIfHeld: (batch) => {
          renewals.push(batch.length);
          return store.renewIfHeld(batch);
        },
      }),
    });
  });

  beforeEach(async () => {
    renewals.length = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  it('of three leases keeps its claim and completes once; duplicates are told meanwhile that it runs', async () => {
    let runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        await delay(3 * LEASE_MS);
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    const { answer, refusals } = await callUntilAnswered(service.client, {
      ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId },
    });

    expect((await first).code).toBe(status.OK);
    expectReplayOf(answer, await first);
    expect(refusals.length).toBeGreaterThan(10);
    for (const { error } of refusals) {
      expect(error.reason).toBe('REQUEST_IN_PROGRESS');
      expect(error.retryDelayMs).toBeGreaterThan(0);
    }
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
    const results = service.events.flatMap((event) => (event.type === 'renewal' ? [event.result] : []));
    expect(results.length).toBeGreaterThanOrEqual(6);
    expect(results).not.toContain('lost');
  });

  it('shares its renewals with all others of its process', async () => {
    const attempts = 40;
    service.handle({
      createPayment: async () => {
        await delay(2 * LEASE_MS);
        throw new StatusError(status.CANCELLED, 'enough');
      },
    });
    const answers = await Promise.all(Array.from({ length: attempts }, () => service.pay()));

    for (const { code } of answers) expect(code).toBe(status.CANCELLED);
    expect(service.events.filter(({ type }) => type === 'released')).toHaveLength(attempts);
    // One by one they would be as many statements as leases.
    expect(renewals.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(5 * attempts);
    expect(renewals.length).toBeLessThanOrEqual(attempts);
  });

  it('is not renewed while it completes, which would defeat it above READ COMMITTED', async () => {
    let runs = 0;
    let renewalsMeanwhile = -1;
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(
          async (tx) => {
            runs += 1;
            const before = renewals.length;
            const response = await recordPayment(tx, request, attempt);
            await tx.$queryRaw`SELECT pg_sleep(${(0.75 * LEASE_MS) / 1_000}::float8)::text`;
            renewalsMeanwhile = renewals.length - before;
            return response;
          },
          { isolationLevel: 'RepeatableRead' },
        ),
    });

    expect((await service.pay()).code).toBe(status.OK);

    expect({ runs, renewalsMeanwhile }).toEqual({ runs: 1, renewalsMeanwhile: 0 });
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('is renewed once before it completes, where little of its lease is left, and not where all of it is', async () => {
    let runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        // Shortly before the first renewal would be due.
        await delay(0.25 * LEASE_MS);
        return attempt.complete(async (tx) => {
          const response = await recordPayment(tx, request, attempt);
          await tx.$queryRaw`SELECT pg_sleep(${(0.85 * LEASE_MS) / 1_000}::float8)::text`;
          return response;
        });
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    const { answer } = await callUntilAnswered(service.client, {
      ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId },
    });

    expectReplayOf(answer, await first);
    expect(runs).toBe(1);
    expect(renewals).toEqual([1]);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });

    renewals.length = 0;
    service.handle({ createPayment: payAndComplete });
    expect((await service.pay()).code).toBe(status.OK);
    expect(renewals).toEqual([]);
  });

  it('goes on with its renewals when its completion has failed and the handler tries another one', async () => {
    let completions = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        const failed = attempt.complete(() => {
          completions += 1;
          return Promise.reject(new Error('no'));
        });
        await failed.catch(() => undefined);
        await delay(1.5 * LEASE_MS);
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    const { answer } = await callUntilAnswered(service.client, {
      ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId },
    });

    expectReplayOf(answer, await first);
    expect(completions).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('is told by its signal, within a third of a lease, that another attempt has its key', async () => {
    let reason: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        await service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid(), attempt = 2');
        await aborted(attempt.signal);
        reason = attempt.signal.reason;
        return payAndComplete(request, attempt);
      },
    });

    const answer = await service.pay();

    expect(reason).toBeInstanceOf(ClaimLostError);
    expect(answer).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'renewal', result: 'lost' }));
    expect(await service.database.count('payments')).toBe(0);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'claimed', attempt: 2 });
  });

  it('keeps the leases of others when the row of one is in somebody else’s hand', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await delay(2.5 * LEASE_MS);
        return payAndComplete(request, attempt);
      },
    });
    const requestIds = Array.from({ length: 4 }, () => randomUUID());
    const paid = requestIds.map((requestId) => service.pay({ requestId }));
    const keeper = await service.database.pool.connect();
    try {
      await delay(0.2 * LEASE_MS);
      await keeper.query('BEGIN');
      await keeper.query('SELECT FROM idempotency_record WHERE request_id = $1 FOR UPDATE', [requestIds[0]]);
      await delay(1.3 * LEASE_MS);
      const running = await service.database.rows<{ id: string }>(
        'SELECT request_id AS id FROM idempotency_record WHERE lease_until > now()',
      );
      expect(running.map(({ id }) => id).sort()).toEqual(requestIds.slice(1).sort());
    } finally {
      await keeper.query('ROLLBACK');
      keeper.release();
    }

    for (const answer of await Promise.all(paid)) expect(answer.code).toBe(status.OK);
    const results = service.events.flatMap((event) => (event.type === 'renewal' ? [event.result] : []));
    expect(results).toContain('busy');
    expect(results).not.toContain('lost');
    expect(await service.database.count("idempotency_record WHERE state = 'completed' AND attempt = 1")).toBe(4);
  });
});

function expectReplayOf({ code, bytes, trailers }: StockAnswer, answer: StockAnswer): void {
  expect(code).toBe(status.OK);
  expect(bytes).toEqual(answer.bytes);
  expect(trailers.get('idempotent-replayed')).toEqual(['true']);
}
