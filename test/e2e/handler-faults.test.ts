import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { invalidArgument, StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  recordPayment,
  startAttemptService,
  toldText,
} from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { failWrites } from '../support/failing-writes';
import { paymentRequest } from '../support/payment-requests';
import type { StockCall } from '../support/stock-client';

const SECRET = 'postgres://admin:hunter2@db-7.internal/payments';

/** An error that can't even be looked at. */
function unreadableError(): Error {
  const unreadable = (): never => {
    throw new Error('not to be read');
  };
  return new Proxy(new Error(SECRET), { get: unreadable, getPrototypeOf: unreadable, has: unreadable });
}

describe('a handler that fails (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  // An unhandled rejection, too, fails a run of these tests.
  afterAll(() => service.stop());

  const fault = () => service.events.find((event) => event.type === 'fault');
  const released = () => service.events.filter(({ type }) => type === 'released').length;

  /** The key is free: a good handler may use it. */
  const expectFree = async (requestId: string): Promise<void> => {
    expect(await service.database.count('idempotency_record')).toBe(0);
    service.handle({ createPayment: payAndComplete });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(await service.database.count('payments')).toBe(1);
  };

  const thrown: readonly [string, unknown][] = [
    ['an error', new Error(SECRET)],
    ['an error with a gRPC code of its own', Object.assign(new Error(SECRET), { code: status.OK, details: SECRET })],
    ['a text', SECRET],
    ['undefined', undefined],
    ['null', null],
    // A class field without `declare` does that: `class AppError extends Error { message; }`.
    ['an error whose message is undefined', Object.assign(new Error(SECRET), { message: undefined })],
    ['an error whose message is an object', Object.assign(new Error(SECRET), { message: {} })],
  ];

  it.each(thrown)('by rejecting with %s is INTERNAL to its caller, who learns nothing', async (_, what) => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async () => {
        await nextTurn();
        throw what;
      },
    });

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.INTERNAL, details: 'internal error' });
    expect(toldText(answer)).toBe('internal error');
    expect(fault()).toMatchObject({ what: 'the handler failed', error: what });
    expect(released()).toBe(1);
    await expectFree(requestId);
  });

  it.each(thrown)('by throwing %s before it is a promise is INTERNAL to its caller', async (_, what) => {
    const requestId = randomUUID();
    service.handle({
      createPayment: () => {
        throw what;
      },
    });

    const answer = await service.pay({ requestId });

    expect(toldText(answer)).toBe('internal error');
    expect(fault()).toMatchObject({ what: 'the handler failed', error: what });
    await expectFree(requestId);
  });

  it.each(thrown)('by throwing %s inside complete is rolled back and INTERNAL to its caller', async (_, what) => {
    const requestId = randomUUID();
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          throw what;
        }),
    });

    const answer = await service.pay({ requestId });

    expect(toldText(answer)).toBe('internal error');
    expect(fault()).toMatchObject({ what: 'the handler failed', error: what });
    expect(released()).toBe(1);
    expect(await service.database.count('payments')).toBe(0);
    await expectFree(requestId);
  });

  it('is answered even where what it threw can not be looked at', async () => {
    service.handle({ createPayment: () => Promise.reject(unreadableError()) });
    const answer = await service.pay({ requestId: randomUUID() });
    expect(toldText(answer)).toBe('internal error');
    expect(fault()).toMatchObject({ what: 'the handler failed with what can not be read' });
  });

  it('does not take the calls beside it with it: one rejects, one answers twice, one after its caller has gone (case J12)', async () => {
    const { pid } = process;
    const crashes: unknown[] = [];
    const crash = (error: unknown): void => void crashes.push(error);
    process.on('unhandledRejection', crash).on('uncaughtException', crash);
    let started = 0;
    const [allStarted, proceed, late] = [deferred(), deferred(), deferred()];
    service.handle({
      createPayment: async (request, attempt) => {
        if ((started += 1) === 20) allStarted.resolve();
        await proceed.promise;
        if (request.orderId === 'order-rejects') throw new Error(SECRET);
        const response = await payAndComplete(request, attempt);
        if (request.orderId === 'order-twice') await payAndComplete(request, attempt).catch(() => undefined);
        if (request.orderId === 'order-gone') late.resolve();
        return response;
      },
    });
    const pay = (orderId: string, call: Partial<StockCall> = {}) =>
      service.pay({ request: paymentRequest({ order_id: orderId }), ...call });
    const hangUp = new AbortController();
    const goneId = randomUUID();
    const rejects = pay('order-rejects');
    const gone = pay('order-gone', { requestId: goneId, signal: hangUp.signal });
    const good = [...Array.from({ length: 17 }, (_, index) => pay(`order-${index}`)), pay('order-twice')];
    await allStarted.promise;
    hangUp.abort();
    expect((await gone).code).toBe(status.CANCELLED);
    proceed.resolve();

    expect((await rejects).code).toBe(status.INTERNAL);
    expect((await Promise.all(good)).map(({ code }) => code)).toEqual(Array(18).fill(status.OK));
    await late.promise;
    const told = await pay('order-gone', { requestId: goneId });
    process.off('unhandledRejection', crash).off('uncaughtException', crash);
    expect(told).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-gone' } } });
    expect(told.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(19);
    expect(await service.database.count("idempotency_record WHERE state = 'completed'")).toBe(19);
    expect(await service.database.count('idempotency_record')).toBe(19);
    expect(crashes).toEqual([]);
    expect(process.pid).toBe(pid);
  });

  const places: readonly ['outside' | 'inside', 'outside' | 'inside'][] = [
    ['outside', 'outside'],
    ['inside', 'inside'],
  ];

  it.each(places)('on purpose, %s complete, is told with its violations, and the key is free', async (_, place) => {
    const requestId = randomUUID();
    const refusal = invalidArgument([{ field: 'amount_minor', description: 'expected a positive number' }]);
    service.handle({
      createPayment: async (request, attempt) => {
        if (place === 'outside') throw refusal;
        return attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          throw refusal;
        });
      },
    });

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'amount_minor: expected a positive number',
      error: { violations: [{ field: 'amount_minor', description: 'expected a positive number' }] },
    });
    expect(fault()).toBeUndefined();
    expect(released()).toBe(1);
    expect(await service.database.count('payments')).toBe(0);
    await expectFree(requestId);
  });

  it('with more text than any client takes is INTERNAL, rather than an answer that never arrives', async () => {
    const requestId = randomUUID();
    service.handle({ createPayment: () => Promise.reject(new StatusError(status.ABORTED, 'x'.repeat(150_000))) });

    const answer = await service.pay({ requestId, deadlineMs: 5_000 });

    expect(answer).toMatchObject({ code: status.INTERNAL, details: 'internal error' });
    expect(fault()).toMatchObject({ what: 'a reply could not be sent' });
    await expectFree(requestId);
  });

  it('whose answer can not be serialized is rolled back, and the key is free', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          const { payment } = await recordPayment(tx, request, attempt);
          return { payment: { ...payment, amountMinor: 2n ** 80n } };
        }),
    });

    const answer = await service.pay({ requestId });

    expect(toldText(answer)).toBe('internal error');
    expect(fault()).toMatchObject({ what: 'the handler failed' });
    expect(await service.database.count('payments')).toBe(0);
    await expectFree(requestId);
  });

  it('by what the database says tells its caller nothing of it', async () => {
    const failing = await failWrites(service.database, { table: 'payments', write: 'INSERT', sqlState: 'P0001' });
    service.handle({ createPayment: payAndComplete });
    try {
      const answer = await service.pay();

      expect(toldText(answer)).toBe('internal error');
      expect(JSON.stringify(fault()?.error)).toContain('db-7.internal');
    } finally {
      await failing.remove();
    }
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('with a status of its own that is transient is not recorded: the retry runs again (case D1)', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: () => Promise.reject(new StatusError(status.UNAVAILABLE, 'the card network is away')),
    });
    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.UNAVAILABLE, details: 'the card network is away' });
    await expectFree(requestId);
  });

  it('after its answer was committed has answered all the same', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (request, attempt) => {
        await payAndComplete(request, attempt);
        throw new Error(SECRET);
      },
    });

    const answer = await service.pay({ requestId });

    expect(answer.code).toBe(status.OK);
    expect(fault()).toMatchObject({ what: 'the handler threw after its answer was committed' });
    expect(released()).toBe(0);
    const replay = await service.pay({ requestId });
    expect(replay.bytes).toEqual(answer.bytes);
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
  });
});
