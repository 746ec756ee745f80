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
import { failWrites } from '../support/failing-writes';

const SECRET = 'postgres://admin:hunter2@db-7.internal/payments';

describe('a handler that fails', () => {
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

  it('does not take the calls beside it with it', async () => {
    let proceed = (): void => undefined;
    const waiting = new Promise<void>((resolve) => (proceed = resolve));
    service.handle({
      createPayment: async (request, attempt) => {
        if (request.orderId === 'order-bad') {
          proceed();
          throw new Error(SECRET);
        }
        await waiting;
        return payAndComplete(request, attempt);
      },
    });
    const good = Array.from({ length: 5 }, () => service.pay());

    const bad = await service.pay({ request: { order_id: 'order-bad' } });

    expect(bad.code).toBe(status.INTERNAL);
    expect((await Promise.all(good)).map(({ code }) => code)).toEqual(Array(5).fill(status.OK));
    expect(await service.database.count('payments')).toBe(5);
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
