import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type ServerEvent, StatusError } from '../../src/idempotency/index';
import type { AttemptService } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { goOn, type HalfFinishing, REQUEST, startHalfFinishing } from '../support/half-finished';
import { payInSteps } from '../support/pay-in-steps';
import { endLeases } from '../support/stored-record';
import { until } from '../support/until';

const CREATE = '/payments.v1.PaymentsService/CreatePayment';
/** Nobody is waited for in these tests. */
const AT_ONCE = { graceMs: 1 };

let service: AttemptService;
let { another, halfFinished, goThrough, muchLater, record, clear } = {} as HalfFinishing;
let looks: number;
/** Holds what a look has found, until a test lets it go. */
let look: Promise<void>;
/** Called when a claim is granted, which is held until it resolves. */
let onGranted: () => Promise<void>;

beforeAll(async () => {
  const started = await startHalfFinishing({
    wrapStore: (store) => ({
      ...store,
      claim: async (request) => {
        const outcome = await store.claim(request);
        if (outcome.kind === 'granted') await onGranted();
        return outcome;
      },
      findHalfFinished: async (terms) => {
        const held = look;
        const found = await store.findHalfFinished(terms);
        looks += 1;
        await held;
        return found;
      },
    }),
  });
  ({ service, another, halfFinished, goThrough, muchLater, record, clear } = started);
});
afterAll(() => service.stop());
beforeEach(async () => {
  looks = 0;
  look = goOn();
  onGranted = goOn;
  await clear();
});

const resumed = (): readonly ServerEvent[] => service.events.filter(({ type }) => type === 'resumed');

describe('the completer (design 4.10)', () => {
  it('finishes what nobody comes back for, as the account and under the key of the request', async () => {
    const requestId = await halfFinished();
    const seen: unknown[] = [];
    service.handle({
      createPayment: async (message, attempt) => {
        seen.push([attempt.scope, attempt.requestId, attempt.metadata.getMap(), attempt.deadline, message.orderId]);
        attempt.publish({ resource: 'payments/1' });
        return payInSteps(service.database, goOn)(message, attempt);
      },
    });
    await endLeases(service.database);

    expect(await service.idempotency.createCompleter(AT_ONCE).runOnce()).toEqual(['completed']);

    expect(seen).toEqual([['account-1', requestId, {}, undefined, 'order-1']]);
    expect(await service.database.rows('SELECT times FROM charges')).toEqual([{ times: 2 }]);
    expect(await record()).toEqual({ state: 'completed', attempt: 2, request: null });
    expect(resumed()).toEqual([
      {
        ...{ type: 'resumed', path: CREATE, requestId, scope: 'account-1', result: 'completed', code: 0, attempt: 2 },
        ...{ durationMs: expect.any(Number) as number, published: { resource: 'payments/1' } },
      },
    ]);
    expect(service.events).toContainEqual({ type: 'takeover', path: CREATE });
    const replay = await service.pay({ request: REQUEST, requestId });
    expect(replay).toMatchObject({ code: status.OK });
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('waits for the caller first, who usually wins', async () => {
    const requestId = await halfFinished();
    await endLeases(service.database);
    goThrough();
    expect(await service.idempotency.createCompleter().runOnce()).toEqual([]);
    expect(await service.pay({ request: REQUEST, requestId })).toMatchObject({ code: status.OK });
    await muchLater();
    expect(await service.idempotency.createCompleter().runOnce()).toEqual([]);
    expect(await record()).toMatchObject({ attempt: 2 });
  });

  it('is one of many who want a request, and one of them gets it', async () => {
    for (let round = 1; round <= 5; round += 1) {
      await clear();
      const requestId = await halfFinished();
      await muchLater();
      goThrough();
      const completers = [1, 2].map(() => service.idempotency.createCompleter());
      const [retry] = await Promise.all([
        service.pay({ request: REQUEST, requestId }),
        ...completers.map((completer) => completer.runOnce()),
      ]);
      expect([status.OK, status.ABORTED]).toContain(retry?.code);
      expect(await service.pay({ request: REQUEST, requestId })).toMatchObject({ code: status.OK });
      expect(await record()).toMatchObject({ state: 'completed', attempt: 2 });
      expect(await service.database.count('payments')).toBe(1);
      expect(await service.database.rows('SELECT times FROM charges')).toEqual([{ times: 2 }]);
    }
  });

  it('tries again later and later what fails, until it is parked', async () => {
    await halfFinished();
    let tries = 0;
    service.handle({
      createPayment: payInSteps(service.database, async (point) => {
        if (point === 'begun') tries += 1;
        if (point === 'begun') throw new StatusError(status.UNAVAILABLE, 'the network is away');
      }),
    });
    const completer = service.idempotency.createCompleter();
    for (let attempt = 2; attempt <= 10; attempt += 1) {
      await muchLater();
      expect(await completer.runOnce()).toEqual(['failed']);
      // Not again at once.
      expect(await completer.runOnce()).toEqual([]);
      expect(await record()).toMatchObject({ state: 'claimed', attempt });
    }
    await muchLater();
    expect(await completer.runOnce()).toEqual([]);
    expect(await record()).toMatchObject({ state: 'parked', attempt: 10 });
    expect(tries).toBe(9);
    expect(resumed()[0]).toMatchObject({ result: 'failed', code: status.UNAVAILABLE });
    expect(service.events.filter(({ type }) => type === 'parked')).toHaveLength(1);
  });

  it('says once that a request is parked, whoever else finds it tried too often', async () => {
    await halfFinished();
    await muchLater();
    await service.database.rows(
      `UPDATE idempotency_record SET attempt = 10, lease_until = lease_until - interval '1 hour'`,
    );
    const slow = deferred();
    look = slow.promise;
    const late = service.idempotency.createCompleter().runOnce();
    await until('it looks', async () => looks === 1);
    look = goOn();
    await service.idempotency.createCompleter().runOnce();
    slow.resolve();
    expect(await late).toEqual([]);
    expect(service.events.filter(({ type }) => type === 'parked')).toHaveLength(1);
  });

  it('counts what it can not read as an attempt, and says so', async () => {
    await halfFinished();
    await service.database.rows(`UPDATE idempotency_record SET request = '\\x0a7f'`);
    goThrough();
    await muchLater();
    const completer = service.idempotency.createCompleter();
    expect(await completer.runOnce()).toEqual(['failed']);
    expect(await completer.runOnce()).toEqual([]);
    expect(await record()).toMatchObject({ state: 'claimed', attempt: 2 });
    const fault = service.events.find(({ type }) => type === 'fault');
    expect(String(fault?.type === 'fault' && fault.error)).toContain('is not a message that its method takes');
  });

  it('is told when another attempt got ahead while it ran', async () => {
    await halfFinished();
    await muchLater();
    service.handle({
      createPayment: async (message, attempt) => {
        await service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid()');
        return payInSteps(service.database, goOn)(message, attempt);
      },
    });
    expect(await service.idempotency.createCompleter().runOnce()).toEqual(['overtaken']);
    expect(await service.database.count('payments')).toBe(0);
  });

  it('keeps the lease of what it runs', async () => {
    const renewals: number[] = [];
    const short = await another({
      policy: { resume: true, leaseMs: 300 },
      onEvent: ({ type }) => type === 'renewal' && renewals.push(1),
    });
    try {
      await halfFinished();
      await muchLater();
      short.handle({
        createPayment: payInSteps(service.database, async (point) => {
          if (point === 'begun') await until('the lease was renewed', async () => renewals.length >= 2);
        }),
      });
      expect(await short.idempotency.createCompleter().runOnce()).toEqual(['completed']);
    } finally {
      await short.stop();
    }
  });
});

describe('a half-finished request', () => {
  it('is not given back by a retry that hangs up before its handler starts (design 4.8)', async () => {
    const requestId = await halfFinished();
    goThrough();
    const [hangUp, slow] = [new AbortController(), deferred()];
    onGranted = async () => {
      hangUp.abort();
      await slow.promise;
    };
    expect(await service.pay({ request: REQUEST, requestId, signal: hangUp.signal })).toMatchObject({
      code: status.CANCELLED,
    });
    // Whatever the server does on the same connection comes after the cancel has reached it.
    await service.client.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
    slow.resolve();
    await until('the claim was let go', async () => service.events.some(({ type }) => type === 'released'));
    expect(await record()).toMatchObject({ state: 'claimed', attempt: 1 });
    await muchLater();
    expect(await service.idempotency.createCompleter().runOnce()).toEqual(['completed']);
  });
});
