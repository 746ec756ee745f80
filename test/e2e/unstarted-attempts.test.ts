import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { until } from '../support/until';

jest.setTimeout(60_000);

describe('callers who hang up before their handler starts (design 4.7, 4.10)', () => {
  let service: AttemptService;
  /** A claim is told only when this is open. */
  let gate: Promise<void> = Promise.resolve();
  beforeAll(async () => {
    service = await startAttemptService({
      wrapStore: (store) => ({
        ...store,
        claim: async (request) => {
          const outcome = await store.claim(request);
          await gate;
          return outcome;
        },
      }),
    });
  });
  afterAll(() => service.stop());

  it('use up no attempts of a half-finished request', async () => {
    const requestId = randomUUID();
    const row = `idempotency_record WHERE request_id = '${requestId}'`;
    let runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        await attempt.effect('charge', async () => {
          if (runs === 1) throw new StatusError(status.UNAVAILABLE, 'no answer');
        });
        return payAndComplete(request, attempt);
      },
    });
    await service.pay({ requestId });
    for (let call = 0; call < 10; call += 1) {
      const opened = deferred();
      gate = opened.promise;
      expect((await service.pay({ requestId, deadlineMs: 100 })).code).toBe(status.DEADLINE_EXCEEDED);
      // The server hears of it a moment later than the caller, and tells nobody.
      await delay(200);
      opened.resolve();
      await until(
        'the claim is given back',
        async () => (await service.database.count(`${row} AND lease_until <= now()`)) === 1,
      );
    }
    gate = Promise.resolve();
    expect((await service.pay({ requestId })).code).toBe(status.OK);
    expect(runs).toBe(2);
  });
});
