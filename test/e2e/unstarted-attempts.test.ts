import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { endLeases } from '../support/stored-record';
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

describe('attempts that died before a step was stored (design 3.1, 4.10)', () => {
  let service: AttemptService;
  const ends = deferred();
  beforeAll(async () => {
    service = await startAttemptService();
  });
  afterAll(async () => {
    ends.resolve();
    await service.stop();
  });

  it('do not count: a request is parked after ten attempts past its first recovery point, and not before', async () => {
    const requestId = randomUUID();
    const row = `idempotency_record WHERE request_id = '${requestId}'`;
    const started = deferred();
    service.handle({
      createPayment: async () => {
        started.resolve();
        await ends.promise;
        throw new StatusError(status.UNAVAILABLE, 'no answer');
      },
    });
    const first = service.pay({ requestId });
    await started.promise;
    // As eleven processes leave it that took it over, one after another, and died.
    await service.database.rows(
      `UPDATE idempotency_record SET attempt = 12, owner_token = gen_random_uuid(), lease_until = now()`,
    );
    let runs = 0;
    service.handle({
      createPayment: async (_, attempt) => {
        runs += 1;
        await attempt.phase('draft', async () => 1);
        return attempt.effect('charge', () => Promise.reject(new StatusError(status.UNAVAILABLE, 'no answer')));
      },
    });

    for (let attempt = 1; attempt <= 10; attempt += 1) {
      // As if the pause after the last one were over.
      await endLeases(service.database);
      expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE, details: 'no answer' });
      expect(await service.database.rows(`SELECT state, attempt FROM ${row}`)).toEqual([
        { state: 'claimed', attempt: 12 + attempt },
      ]);
    }
    expect(await service.pay({ requestId })).toMatchObject({ error: { reason: 'REQUEST_PARKED' } });

    expect(runs).toBe(10);
    ends.resolve();
    await first;
  });
});
