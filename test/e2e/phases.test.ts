import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { reject, StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  type PaymentAttempt,
  recordPayment,
  startAttemptService,
} from '../support/attempt-service';
import { endLeases } from '../support/stored-record';

describe('phases and effects (design 4.10)', () => {
  let service: AttemptService;
  beforeAll(async () => (service = await startAttemptService({ policy: { leaseMs: 2_000 } })));
  afterAll(() => service.stop());

  const stored = () =>
    service.database.rows<{ state: string; attempt: number; recovery_point: string | null }>(
      'SELECT state, attempt, recovery_point FROM idempotency_record ORDER BY created_at DESC LIMIT 1',
    );

  it('a later attempt gets what was stored, and does not run it again', async () => {
    const requestId = randomUUID();
    const runs: string[] = [];
    const keys: string[] = [];
    let fail = true;
    service.handle({
      createPayment: async (request, attempt) => {
        const draft = await attempt.phase('draft', async () => {
          runs.push('draft');
          return { at: new Date(runs.length), amount: request.amountMinor };
        });
        const charge = await attempt.effect('charge', async (key) => {
          runs.push('charge');
          keys.push(key);
          return { id: `charge-${draft.at.getTime()}`, amount: draft.amount };
        });
        await attempt.phase('noted', async () => runs.push('noted') && charge.id);
        if (fail) throw new StatusError(status.UNAVAILABLE, 'the mail server is away');
        expect(charge).toEqual({ id: 'charge-1', amount: request.amountMinor });
        return attempt.complete((tx) => recordPayment(tx, request, attempt));
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    // Not given back: half of it is done.
    expect(await stored()).toEqual([{ state: 'claimed', attempt: 1, recovery_point: 'noted' }]);
    fail = false;
    // Nor does the next attempt wait for the lease.
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(runs).toEqual(['draft', 'charge', 'noted']);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    expect(await stored()).toEqual([{ state: 'completed', attempt: 2, recovery_point: 'noted' }]);
    expect(await service.database.count(`idempotency_record WHERE results IS NOT NULL`)).toBe(0);
  });

  it('an effect that has begun is sent again under the same key, and the key is never given back', async () => {
    const requestId = randomUUID();
    const keys: string[] = [];
    const attempts: number[] = [];
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.effect('charge', async (key, context) => {
          keys.push(key);
          attempts.push(context.attempt);
          if (keys.length === 1) throw new StatusError(status.UNAVAILABLE, 'no answer');
        });
        return payAndComplete(request, attempt);
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    expect(await stored()).toEqual([{ state: 'claimed', attempt: 1, recovery_point: 'charge#begun' }]);
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    // Case C6: by it the other side tells the later of two from the earlier one.
    expect(attempts).toEqual([1, 2]);
  });

  it('a phase that begins an effect stores both in one commit; the effect stores nothing more before it is sent', async () => {
    const requestId = randomUUID();
    const seen: unknown[] = [];
    const keys: string[] = [];
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.phase('draft', async () => 'drafted', {
          begins: (value) => (value === 'drafted' ? 'charge' : undefined),
        });
        seen.push((await stored())[0]);
        await attempt.effect('charge', async (key) => {
          seen.push((await stored())[0]);
          keys.push(key);
          if (keys.length === 1) throw new StatusError(status.UNAVAILABLE, 'no answer');
        });
        return payAndComplete(request, attempt);
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    const begun = { state: 'claimed', attempt: 1, recovery_point: 'charge#begun' };
    expect(seen).toEqual([begun, begun]);
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(new Set(keys).size).toBe(1);
  });

  it('a phase whose value says that no effect follows begins none', async () => {
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.phase('draft', async () => 'paid', {
          begins: (value) => (value === 'drafted' ? 'charge' : undefined),
        });
        throw new StatusError(status.UNAVAILABLE, 'not now');
      },
    });
    expect(await service.pay()).toMatchObject({ code: status.UNAVAILABLE });
    expect(await stored()).toEqual([{ state: 'claimed', attempt: 1, recovery_point: 'draft' }]);
  });

  it('an effect that a phase has begun must be the next step', async () => {
    let message = '';
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.phase('draft', async () => 1, { begins: 'charge' });
        await attempt.phase('other', async () => 2).catch((error: Error) => (message = error.message));
        throw new StatusError(status.UNAVAILABLE, 'not now');
      },
    });
    await service.pay();
    expect(message).toContain('phase other: what is stored for this key has effect charge in its place');
  });

  it('a phase and its writes commit together, or neither', async () => {
    const requestId = randomUUID();
    const before = await service.database.count('payments');
    service.handle({
      createPayment: (request, attempt) =>
        attempt.phase('draft', async (tx) => {
          await recordPayment(tx, request, attempt);
          throw new StatusError(status.UNAVAILABLE, 'not now');
        }),
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    expect(await service.database.count('payments')).toBe(before);
    // Nothing is stored, so the key is free.
    expect(await service.database.count(`idempotency_record WHERE request_id = '${requestId}'`)).toBe(0);
  });

  it.each<readonly [string, (attempt: PaymentAttempt) => Promise<unknown>, string]>([
    [
      'a name twice',
      async (a) => (await a.phase('x', async () => 1), a.phase('x', async () => 2)),
      'phase x: this attempt has used the name already',
    ],
    [
      'two at once',
      async (a) => Promise.all([a.phase('x', async () => 1), a.effect('y', async () => 2)]),
      'effect y: phase x is already running; await it',
    ],
    [
      'an effect that is begun under the name of its phase',
      (a) => a.phase('x', async () => 1, { begins: 'x' }),
      'effect x: this attempt has used the name already',
    ],
    [
      'a value that can not be stored',
      (a) => a.phase('x', async () => ({ f: () => 1 })),
      "x.f: a function can't be stored",
    ],
  ])('%s is an error that names it, and nothing is half written', async (_, misuse, told) => {
    let message = '';
    service.handle({
      createPayment: async (_request, attempt) => {
        await misuse(attempt).catch((error: Error) => (message = error.message));
        return attempt.complete(() => Promise.resolve(reject(new StatusError(status.ABORTED, 'done'))));
      },
    });
    await service.pay();
    expect(message).toContain(told);
  });

  it('a changed order of steps stops a half-finished request', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.phase('draft', async () => 1);
        throw new StatusError(status.UNAVAILABLE, 'not now');
      },
    });
    await service.pay({ requestId });
    service.handle({
      createPayment: async (request, attempt) => (
        await attempt.effect('charge', async () => 1),
        payAndComplete(request, attempt)
      ),
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.INTERNAL });
    const fault = service.events.find(({ type }) => type === 'fault');
    expect(String(fault?.type === 'fault' && fault.error)).toContain(
      'what is stored for this key has phase draft in its place',
    );
  });

  it('a request that fails for ever past a recovery point ends parked, and is told so', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.effect('charge', async () =>
          Promise.reject(new StatusError(status.UNAVAILABLE, 'the network is away')),
        );
        throw new Error('not reached');
      },
    });
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
      await endLeases(service.database);
    }
    for (let again = 1; again <= 2; again += 1) {
      expect(await service.pay({ requestId })).toMatchObject({ error: { reason: 'REQUEST_PARKED' } });
    }
    expect(await stored()).toEqual([{ state: 'parked', attempt: 10, recovery_point: 'charge#begun' }]);
    expect(service.events.filter(({ type }) => type === 'parked')).toHaveLength(1);
  });

  it('a refusal that is thrown past a recovery point is no refusal to its caller', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.phase('draft', async () => 1, { begins: 'charge' });
        await attempt.effect('charge', async () => 1);
        throw new StatusError(status.FAILED_PRECONDITION, 'not now');
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({
      code: status.UNAVAILABLE,
      details: 'not now (the request is half finished and goes on: retry with the same key)',
    });
  });

  it('a later attempt does not complete past an effect that has begun', async () => {
    const requestId = randomUUID();
    let attempts = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        attempts += 1;
        if (attempts === 2) {
          return attempt.complete(async () => reject(new StatusError(status.NOT_FOUND, 'no such customer')));
        }
        await attempt.effect('charge', async () => {
          throw new StatusError(status.UNAVAILABLE, 'no answer');
        });
        return payAndComplete(request, attempt);
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.INTERNAL });
    expect(await stored()).toEqual([{ state: 'claimed', attempt: 2, recovery_point: 'charge#begun' }]);
  });

  it('nor does the attempt whose phase has begun it', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.phase('draft', async () => 1, { begins: 'charge' });
        return payAndComplete(request, attempt);
      },
    });
    expect(await service.pay()).toMatchObject({ code: status.INTERNAL });
  });
});
