import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { ClaimLostError, type IdempotencyStore } from '../../src/idempotency/index';
import type { RunningClaim } from '../../src/idempotency/store/store';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';
import { aborted, deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer } from '../support/stock-client';
import { until } from '../support/until';

type Publish = IdempotencyStore<never>['publishIfHeld'];

describe('a duplicate of a running attempt (design 4.9)', () => {
  let service: AttemptService;
  /** What the store says of every key, where a test wants to say it. */
  let running: RunningClaim | undefined;
  /** Resources that were stored by themselves, in order. */
  let stored: string[];
  let publish: Publish | undefined;

  beforeAll(async () => {
    service = await startAttemptService({
      // No renewal tells an owner of its loss here.
      policy: { leaseMs: 600_000, maxExecutionMs: 600_000 },
      wrapStore: (store) => ({
        ...store,
        claim: (request) =>
          running === undefined ? store.claim(request) : Promise.resolve({ ...running, kind: 'in_progress' }),
        publishIfHeld: (claim, resource) => {
          stored.push(resource);
          return (publish ?? store.publishIfHeld)(claim, resource);
        },
      }),
    });
  });

  beforeEach(async () => {
    running = undefined;
    publish = undefined;
    stored = [];
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const hintOf = ({ code, error, trailers }: StockAnswer): number | undefined => {
    expect({ code, reason: error.reason }).toEqual({ code: status.ABORTED, reason: 'REQUEST_IN_PROGRESS' });
    expect(trailers.get('grpc-retry-pushback-ms')).toEqual([String(error.retryDelayMs)]);
    return error.retryDelayMs;
  };
  const resourceOf = (answer: StockAnswer): string | undefined => {
    hintOf(answer);
    return answer.error.metadata.get('resource');
  };
  /** What the only record is about. */
  const recorded = async (): Promise<string | null | undefined> =>
    (await service.database.rows<{ resource: string | null }>('SELECT resource FROM idempotency_record'))[0]?.resource;

  // The first test, since nothing is known yet of how long attempts take.
  it('is asked to come back by what is left of the lease, and by what attempts have taken so far', async () => {
    running = { leaseLeftMs: 700, ageMs: 29_000, resource: undefined };
    expect(hintOf(await service.pay())).toBe(700);
    running = { leaseLeftMs: 30_000, ageMs: 100, resource: undefined };
    expect(hintOf(await service.pay())).toBe(400);

    running = undefined;
    service.handle({
      createPayment: async (request, attempt) => {
        await delay(1_500);
        return payAndComplete(request, attempt);
      },
    });
    await service.pay();
    running = { leaseLeftMs: 30_000, ageMs: 0, resource: undefined };
    expect(hintOf(await service.pay())).toBeGreaterThanOrEqual(1_500);
  });

  it('is refused at once, in one frame, with the hint in both of its forms', async () => {
    const [started, proceed] = [deferred(), deferred()];
    service.handle({
      createPayment: async (request, attempt) => {
        started.resolve();
        await proceed.promise;
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await started.promise;

    const duplicate = await service.pay({ requestId });

    expect(hintOf(duplicate)).toBeGreaterThan(0);
    expect(duplicate.trailersOnly).toBe(true);
    expect(duplicate.trailers.get('idempotent-replayed')).toEqual([]);
    expect(duplicate.error.metadata.has('resource')).toBe(false);
    const other = await service.pay({ requestId, request: paymentRequest({ order_id: 'order-2' }) });
    expect(other).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    proceed.resolve();
    expect((await first).code).toBe(status.OK);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('is told what the running attempt has published, at once and as it was last', async () => {
    const published = deferred();
    const proceed = deferred();
    service.handle({
      createPayment: async (request, attempt) => {
        attempt.publish({ order_id: 'order-1', resource: 'payments/draft' });
        attempt.publish({ resource: 'payments/1' });
        attempt.publish({ resource: 'payments/1', state: 'authorized' });
        published.resolve();
        await proceed.promise;
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await published.promise;
    await until('the resource is stored', async () => (await recorded()) === 'payments/1');

    expect(resourceOf(await service.pay({ requestId }))).toBe('payments/1');
    // Nothing is written twice, and nothing but the resource.
    expect(stored).toEqual(['payments/draft', 'payments/1']);
    proceed.resolve();
    expect((await first).code).toBe(status.OK);
    expect(await recorded()).toBe('payments/1');
    const line = service.events.find((event) => event.type === 'call' && event.outcome === 'claimed');
    expect(line).toMatchObject({ published: { order_id: 'order-1', resource: 'payments/1', state: 'authorized' } });
  });

  it('is told a resource that no text column can hold as far as one can, and it costs the attempt nothing', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        attempt.publish({ resource: 'payments/\0' });
        await until('the resource is stored', async () => (await recorded()) === 'payments/\ufffd');
        return payAndComplete(request, attempt);
      },
    });
    expect((await service.pay()).code).toBe(status.OK);
    expect(await recorded()).toBe('payments/\ufffd');
  });

  it('is not told what is published inside a transaction before that commits', async () => {
    const [inside, proceed] = [deferred(), deferred()];
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          attempt.publish({ resource: 'payments/staged' });
          inside.resolve();
          await proceed.promise;
          return recordPayment(tx, request, attempt);
        }),
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await inside.promise;

    expect(resourceOf(await service.pay({ requestId }))).toBeUndefined();
    expect(await recorded()).toBeNull();
    proceed.resolve();
    expect((await first).code).toBe(status.OK);
    expect(await recorded()).toBe('payments/staged');
    expect(stored).toEqual([]);
  });

  it('of an owner that publishes after its claim went to another one hears nothing of that, and the owner of its loss', async () => {
    let reason: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        const { signal } = attempt;
        await service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid(), attempt = 2');
        attempt.publish({ resource: 'payments/late' });
        await aborted(signal);
        reason = signal.reason;
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();

    expect(await service.pay({ requestId })).toMatchObject({
      code: status.ABORTED,
      error: { reason: 'CLAIM_LOST' },
    });

    expect(reason).toBeInstanceOf(ClaimLostError);
    // The lost publication and the refused completion are of one attempt, which is counted once.
    expect(service.events.filter(({ type }) => type === 'fenced')).toHaveLength(1);
    expect(await recorded()).toBeNull();
    expect(await service.database.count('payments')).toBe(0);
  });

  it('of an owner that publishes after its claim went to another one, and fails, is one lost attempt too', async () => {
    service.handle({
      createPayment: async (_, attempt) => {
        const { signal } = attempt;
        await service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid(), attempt = 2');
        attempt.publish({ resource: 'payments/late' });
        await aborted(signal);
        throw new Error('broken');
      },
    });
    expect((await service.pay()).error.reason).toBe('CLAIM_LOST');
    expect(service.events.filter(({ type }) => type === 'fenced')).toHaveLength(1);
  });

  it('hears nothing of a resource that could not be stored; the attempt goes on, and records it', async () => {
    const [failed, proceed] = [deferred(), deferred()];
    publish = () => {
      failed.resolve();
      return Promise.reject(new Error('away'));
    };
    service.handle({
      createPayment: async (request, attempt) => {
        attempt.publish({ resource: 'payments/1' });
        await proceed.promise;
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await failed.promise;

    expect(resourceOf(await service.pay({ requestId }))).toBeUndefined();
    proceed.resolve();
    expect((await first).code).toBe(status.OK);
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'a resource could not be published' }),
    );
    expect(await recorded()).toBe('payments/1');
  });

  it('of an attempt whose resource is still on its way waits for nothing; the completion waits for it', async () => {
    const [asked, answer] = [deferred(), deferred()];
    let completed = false;
    publish = async () => {
      asked.resolve();
      await answer.promise;
      return true;
    };
    service.handle({
      createPayment: (request, attempt) => {
        if (request.orderId !== 'order-1') return payAndComplete(request, attempt);
        attempt.publish({ resource: 'payments/1' });
        return attempt.complete((tx) => {
          completed = true;
          return recordPayment(tx, request, attempt);
        });
      },
    });
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await asked.promise;

    hintOf(await service.pay({ requestId }));
    // Whoever comes after it has long completed.
    for (const order of ['order-2', 'order-3']) {
      expect((await service.pay({ request: paymentRequest({ order_id: order }) })).code).toBe(status.OK);
    }
    // A resource that is stored while the transaction runs would defeat it above READ COMMITTED.
    expect(completed).toBe(false);
    answer.resolve();
    expect((await first).code).toBe(status.OK);
  });
});
