import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { ClaimLostError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { aborted, deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import type { StockCall } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';

const LEASE_MS = 1_500;
const LIMIT_MS = 1.5 * LEASE_MS;

describe('an attempt that runs longer than max_execution (design 4.7)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({ policy: { leaseMs: LEASE_MS, maxExecutionMs: LIMIT_MS } });
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(() => service.stop());

  const newCall = (): StockCall => ({
    ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId: randomUUID() },
  });

  it('loses its lease and is told so; another takes over, and what it completes late changes nothing', async () => {
    let runs = 0;
    const lost = deferred<{ readonly reason: unknown; readonly afterMs: number }>();
    const goOn = deferred();
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        if (runs > 1) return payAndComplete(request, attempt);
        const startedAtMs = performance.now();
        await aborted(attempt.signal);
        lost.resolve({ reason: attempt.signal.reason, afterMs: performance.now() - startedAtMs });
        await goOn.promise;
        return payAndComplete(request, attempt);
      },
    });
    const pay = newCall();
    const first = service.client.call(pay);
    const { answer, refusals } = await callUntilAnswered(service.client, pay);
    const { reason, afterMs } = await lost.promise;
    goOn.resolve();
    const late = await first;

    expect(reason).toBeInstanceOf(ClaimLostError);
    // Not at the limit, but when the lease that it still had has run out.
    expect(afterMs).toBeGreaterThan(LIMIT_MS);
    expect(refusals.length).toBeGreaterThan(0);
    for (const { error } of refusals) expect(error.reason).toBe('REQUEST_IN_PROGRESS');
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(late.code).toBe(status.OK);
    expect(late.bytes).toEqual(answer.bytes);
    expect(late.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(runs).toBe(2);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 2 });
    expect(service.events.filter(({ type }) => type === 'execution_limit')).toHaveLength(1);
    expect(service.events.filter(({ type }) => type === 'takeover')).toHaveLength(1);
    expect(service.events.filter(({ type }) => type === 'fenced')).toHaveLength(1);
  });

  it('does not complete once it was told, and holds its key no longer: a retry runs', async () => {
    let runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        if (runs === 1) await aborted(attempt.signal);
        return payAndComplete(request, attempt);
      },
    });
    const pay = newCall();

    const late = await service.client.call(pay);
    // By the database's clock its lease may be over a little later: by what its last renewal took.
    const { answer: retried } = await callUntilAnswered(service.client, pay);

    expect(late).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(retried.code).toBe(status.OK);
    expect(retried.trailers.get('idempotent-replayed')).toEqual([]);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 2 });
  });

  it('still completes within the lease that it has', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await delay(LIMIT_MS + LEASE_MS / 6);
        return payAndComplete(request, attempt);
      },
    });

    expect((await service.client.call(newCall())).code).toBe(status.OK);
    expect(service.events.filter(({ type }) => type === 'execution_limit')).toHaveLength(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('is told of once also where that happens while it completes, when no lease is looked after', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await delay(LIMIT_MS - LEASE_MS / 2);
        return attempt.complete(async (tx) => {
          await delay(LEASE_MS / 2 + LEASE_MS / 10);
          return recordPayment(tx, request, attempt);
        });
      },
    });

    expect((await service.client.call(newCall())).code).toBe(status.OK);

    expect(service.events.filter(({ type }) => type === 'execution_limit')).toHaveLength(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });
});
