import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { INSERT_CLAIM, TAKE_OVER_IF_EXPIRED } from '../../src/idempotency/store/sql/claim';
import { RELEASE_IF_HELD } from '../../src/idempotency/store/sql/lease';
import { LOOK_UP } from '../../src/idempotency/store/sql/look-up';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';

jest.setTimeout(60_000);

/** So long that nothing is renewed while a test runs, which would undo what it does to the lease. */
const LEASE_MS = 60_000;

describe.each([
  ['default', {}],
  ['1', { businessPoolSize: 1, storePoolSize: 1 }],
])('a claim whose own outcome is not known, pools of %s (design 4.6, case B3)', (_, pools) => {
  let proxy: CommitProxy;
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({
      ...{ pools, policy: { leaseMs: LEASE_MS } },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({ createPayment: payAndComplete });
  });

  afterAll(async () => {
    await service.stop();
    proxy.close();
  });

  const pay = (requestId: string, deadlineMs = 20_000) =>
    callUntilAnswered(service.client, {
      ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId, deadlineMs },
    });

  const records = () => service.database.rows('SELECT state, attempt FROM idempotency_record');

  /** A call whose handler has started, and ends when it is told to fail. */
  const hang = async (requestId: string) => {
    const started = deferred();
    const ended = deferred();
    service.handle({
      createPayment: async () => {
        started.resolve();
        await ended.promise;
        throw new Error('overtaken');
      },
    });
    const first = service.pay({ requestId });
    await started.promise;
    return { first, fail: ended.resolve };
  };

  it.each(['cut before', 'cut after'] as const)(
    'because its connection was %s it, is made all the same',
    async (fault) => {
      const cut = proxy.on(INSERT_CLAIM, fault);

      const { answer, refusals } = await pay(randomUUID());

      expect(cut.times()).toBe(1);
      expect(refusals).toEqual([]);
      expect(answer.code).toBe(status.OK);
      expect(await records()).toEqual([{ state: 'completed', attempt: 1 }]);
      expect(await service.database.count('payments')).toBe(1);
    },
  );

  it('is a takeover where the answer to that was lost', async () => {
    const requestId = randomUUID();
    const { first, fail } = await hang(requestId);
    await service.database.rows('UPDATE idempotency_record SET lease_until = now()');
    service.handle({ createPayment: payAndComplete });
    const cut = proxy.on(TAKE_OVER_IF_EXPIRED, 'cut after');

    const { answer, refusals } = await pay(requestId);

    expect(cut.times()).toBe(1);
    expect(answer.code).toBe(status.OK);
    // Recognised as its own; or, where no other connection was to be had in time, given back and claimed anew.
    const wasGivenBack = refusals.some(({ error }) => error.reason === 'STORE_UNAVAILABLE');
    expect(await records()).toEqual([{ state: 'completed', attempt: wasGivenBack ? 1 : 2 }]);
    fail();
    await first;
    expect(await service.database.count('payments')).toBe(1);
  });

  it('is given back where that was a takeover and nobody could be asked about it', async () => {
    const requestId = randomUUID();
    const { first, fail } = await hang(requestId);
    await service.database.rows('UPDATE idempotency_record SET lease_until = now()');
    service.handle({ createPayment: payAndComplete });
    const takeover = proxy.on(TAKE_OVER_IF_EXPIRED, 'cut after');
    // Before it reads the record for the first time, nobody knows that there is something to take over.
    const lookUps = takeover.happened().then(() => proxy.on(LOOK_UP, 'cut before', 4));
    const startedAt = performance.now();

    const { answer, refusals } = await pay(requestId);

    expect(answer.code).toBe(status.OK);
    expect((await lookUps).times()).toBe(4);
    expect(refusals[0]).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'STORE_UNAVAILABLE' } });
    expect(performance.now() - startedAt).toBeLessThan(LEASE_MS / 2);
    expect(await records()).toEqual([{ state: 'completed', attempt: 1 }]);
    fail();
    await first;
    expect(await service.database.count('payments')).toBe(1);
  });

  it('whatever is tried blocks its key for a moment only, not for its lease', async () => {
    const requestId = randomUUID();
    const cuts = [proxy.on(INSERT_CLAIM, 'cut after', 5), proxy.on(LOOK_UP, 'cut before', 5)];
    const startedAt = performance.now();

    const { answer, refusals } = await pay(requestId);

    expect(cuts[0]?.times()).toBe(5);
    expect(refusals[0]).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'STORE_UNAVAILABLE' } });
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(performance.now() - startedAt).toBeLessThan(LEASE_MS);
    expect(await records()).toEqual([{ state: 'completed', attempt: 1 }]);
    expect(await service.database.count('payments')).toBe(1);
    for (const cut of cuts) cut.end();
  });

  it('and can not be given back either, waits for the end of its lease', async () => {
    const requestId = randomUUID();
    const cuts = [
      ...[proxy.on(INSERT_CLAIM, 'cut after', 5), proxy.on(RELEASE_IF_HELD, 'cut before', Infinity)],
      proxy.on(LOOK_UP, 'cut before', 5),
    ];
    expect(await service.pay({ requestId })).toMatchObject({ error: { reason: 'STORE_UNAVAILABLE' } });
    for (const cut of [cuts[0], cuts[2]]) cut?.end();
    await cuts[1]?.happened(2);

    expect(await service.pay({ requestId })).toMatchObject({ error: { reason: 'REQUEST_IN_PROGRESS' } });
    await service.database.rows('UPDATE idempotency_record SET lease_until = now()');
    expect((await pay(requestId)).answer.code).toBe(status.OK);

    cuts[1]?.end();
    expect(await records()).toEqual([{ state: 'completed', attempt: 2 }]);
    expect(await service.database.count('payments')).toBe(1);
  });
});

describe('the claim of an attempt that failed', () => {
  it('and could not be given back at once is given back a moment later, long before its lease is over', async () => {
    let proxy: CommitProxy | undefined;
    const service = await startAttemptService({
      policy: { leaseMs: LEASE_MS },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
    try {
      const requestId = randomUUID();
      service.handle({ createPayment: () => Promise.reject(new Error('broken')) });
      const cut = proxy?.on(RELEASE_IF_HELD, 'cut before');
      const startedAt = performance.now();
      expect(await service.pay({ requestId })).toMatchObject({ code: status.INTERNAL });
      expect(cut?.times()).toBe(1);
      expect(service.events).toContainEqual(
        expect.objectContaining({ what: 'a claim could not be released; it ends with its lease at the latest' }),
      );

      service.handle({ createPayment: payAndComplete });
      const { answer } = await callUntilAnswered(service.client, {
        ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId },
      });
      expect(answer.code).toBe(status.OK);
      expect(performance.now() - startedAt).toBeLessThan(LEASE_MS / 2);
      expect(await service.database.rows('SELECT state, attempt FROM idempotency_record')).toEqual([
        { state: 'completed', attempt: 1 },
      ]);
    } finally {
      await service.stop();
      proxy?.close();
    }
  });
});

describe('a store that freezes (case B4)', () => {
  it('runs nothing meanwhile, and every key pays once when it is back', async () => {
    let proxy: CommitProxy | undefined;
    const service = await startAttemptService({
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
    try {
      service.handle({ createPayment: payAndComplete });
      const request = paymentRequest({ order_id: 'order-1' });
      const keys = Array.from({ length: 20 }, () => randomUUID());
      const unfreeze = proxy?.freeze();
      const refused = await Promise.all(
        keys.map((requestId) => service.pay({ request, requestId, deadlineMs: 1_000 })),
      );
      expect(new Set(refused.map(({ code }) => code))).toEqual(new Set([status.DEADLINE_EXCEEDED]));
      expect(await service.database.count('payments')).toBe(0);

      unfreeze?.();
      const answered = await Promise.all(
        keys.map((requestId) =>
          callUntilAnswered(service.client, { ...{ method: 'CreatePayment', requestId }, request }),
        ),
      );

      expect(answered.map(({ answer }) => answer.code)).toEqual(keys.map(() => status.OK));
      expect(await service.database.count('payments')).toBe(20);
      expect(await service.database.count(`idempotency_record WHERE state = 'completed'`)).toBe(20);
    } finally {
      await service.stop();
      proxy?.close();
    }
  });
});
