import { randomUUID } from 'node:crypto';
import { setImmediate as afterOthers } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { CompletionFailedError, StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  type PaymentAttempt,
  recordPayment,
  startAttemptService,
} from '../support/attempt-service';
import { aborted, deferred } from '../support/deferred';

const LEASE_MS = 600;

describe('an attempt that has ended, or lost its claim (design 4.7, 4.8)', () => {
  let service: AttemptService;
  /** What the store was asked, in order. */
  let asked: string[];
  let renewal: () => Promise<void>;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { leaseMs: LEASE_MS },
      wrapStore: (store) => ({
        ...store,
        publishIfHeld: (...publication) => {
          asked.push('publication');
          return store.publishIfHeld(...publication);
        },
        renewIfHeld: async (renewals) => {
          asked.push('renewal begins');
          await renewal();
          const results = await store.renewIfHeld(renewals);
          asked.push('renewal ends');
          return results;
        },
        releaseIfHeld: (claim) => {
          asked.push('release');
          return store.releaseIfHeld(claim);
        },
      }),
    });
  });

  beforeEach(async () => {
    asked = [];
    renewal = () => Promise.resolve();
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const takeAway = (requestId: string) =>
    service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid() WHERE request_id = $1', [
      requestId,
    ]);
  const told = (type: string) => service.events.filter((event) => event.type === type);

  it('is told by its signal that its completion found the claim lost', async () => {
    const requestId = randomUUID();
    let before: boolean | undefined;
    let after: boolean | undefined;
    service.handle({
      createPayment: async (request, attempt) => {
        before = attempt.signal.aborted;
        await takeAway(requestId);
        const answer = await payAndComplete(request, attempt).catch((error: Error) => error);
        after = attempt.signal.aborted;
        throw answer as Error;
      },
    });

    expect((await service.pay({ requestId })).error.reason).toBe('CLAIM_LOST');
    expect([before, after]).toEqual([false, true]);
  });

  it('runs no phase once its claim is known to be lost', async () => {
    const requestId = randomUUID();
    let runs = 0;
    let failure: unknown;
    service.handle({
      createPayment: async (_, attempt) => {
        await takeAway(requestId);
        await aborted(attempt.signal);
        const phase = attempt.phase('draft', async () => (runs += 1));
        failure = await phase.catch((error: unknown) => error);
        throw failure as Error;
      },
    });

    expect((await service.pay({ requestId })).error.reason).toBe('CLAIM_LOST');
    expect(failure).toBeInstanceOf(CompletionFailedError);
    expect(runs).toBe(0);
  });

  it('completes nothing after its handler has failed, not even where it has no claim', async () => {
    let late: (() => Promise<unknown>) | undefined;
    service.handle({
      updatePayment: (_, attempt) => {
        late = () =>
          attempt.complete(async (tx) => {
            const request = {
              orderId: 'order-1',
              amountMinor: 1n,
              currency: 'EUR',
              paymentMethod: 'card',
              metadata: {},
            };
            await recordPayment(tx, request, attempt);
            return { payment: undefined };
          });
        return Promise.reject(new StatusError(status.UNAVAILABLE, 'not now'));
      },
    });
    const answer = await service.client.call({ method: 'UpdatePayment', request: { payment_id: randomUUID() } });
    expect(answer.code).toBe(status.UNAVAILABLE);

    await expect(late?.()).rejects.toThrow('complete: the handler has returned; complete before it does');
    expect(await service.database.count('payments')).toBe(0);
  });

  it('publishes nothing any more: nobody could learn it, and no claim is missed', async () => {
    let kept: PaymentAttempt | undefined;
    service.handle({
      createPayment: (_, attempt) => {
        kept = attempt;
        return Promise.reject(new StatusError(status.UNAVAILABLE, 'not now'));
      },
    });
    await service.pay();
    kept?.publish({ resource: 'payments/1' });
    await afterOthers();

    expect(asked).not.toContain('publication');
    expect(told('fenced')).toEqual([]);
  });

  it('publishes nothing after its commit: the claim is completed, and not lost', async () => {
    let signal: AbortSignal | undefined;
    service.handle({
      createPayment: async (request, attempt) => {
        const answer = await payAndComplete(request, attempt);
        attempt.publish({ resource: 'payments/1' });
        signal = attempt.signal;
        return answer;
      },
    });

    expect((await service.pay()).code).toBe(status.OK);
    expect(asked).not.toContain('publication');
    expect(told('fenced')).toEqual([]);
    expect(signal?.aborted).toBe(false);
  });

  it('gives its key back behind a renewal that is under way, which would take the key for lost', async () => {
    const [begun, letThrough] = [deferred(), deferred()];
    renewal = () => {
      begun.resolve();
      return letThrough.promise;
    };
    service.handle({
      createPayment: async () => {
        await begun.promise;
        throw new StatusError(status.UNAVAILABLE, 'not now');
      },
    });
    const answer = service.pay();
    await begun.promise;
    // A release that did not wait would have been asked for by then.
    for (let turn = 0; turn < 10; turn += 1) await afterOthers();
    letThrough.resolve();

    expect((await answer).code).toBe(status.UNAVAILABLE);
    expect(asked).toEqual(['renewal begins', 'renewal ends', 'release']);
    expect(told('fenced')).toEqual([]);
  });
});
