import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { deferred } from '../support/deferred';
import { goOn, REQUEST } from '../support/half-finished';
import { payInSteps } from '../support/pay-in-steps';
import { endLeases } from '../support/stored-record';
import { until } from '../support/until';
import { AT_ONCE, useHalfFinishing } from '../support/use-half-finishing';

const CREATE = '/payments.v1.PaymentsService/CreatePayment';

const used = useHalfFinishing();

describe('the completer (design 4.10)', () => {
  it('finishes what nobody comes back for, as the account and under the key of the request', async () => {
    const requestId = await used.halfFinished();
    const seen: unknown[] = [];
    used.service.handle({
      createPayment: async (message, attempt) => {
        seen.push([attempt.scope, attempt.requestId, attempt.metadata.getMap(), attempt.deadline, message.orderId]);
        attempt.publish({ resource: 'payments/1' });
        return payInSteps(used.service.database, goOn)(message, attempt);
      },
    });
    await endLeases(used.service.database);

    expect(await used.service.idempotency.createCompleter(AT_ONCE).runOnce()).toEqual(['completed']);

    expect(seen).toEqual([['account-1', requestId, {}, undefined, 'order-1']]);
    expect(await used.service.database.rows('SELECT times FROM charges')).toEqual([{ times: 2 }]);
    expect(await used.record()).toEqual({ state: 'completed', attempt: 2, request: null });
    expect(used.resumed()).toEqual([
      {
        ...{ type: 'resumed', path: CREATE, requestId, scope: 'account-1', result: 'completed', code: 0, attempt: 2 },
        ...{ durationMs: expect.any(Number) as number, published: { resource: 'payments/1' } },
      },
    ]);
    expect(used.service.events).toContainEqual({ type: 'takeover', path: CREATE });
    const replay = await used.service.pay({ request: REQUEST, requestId });
    expect(replay).toMatchObject({ code: status.OK });
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await used.service.database.count('payments')).toBe(1);
  });

  it('waits for the caller first, who usually wins', async () => {
    const requestId = await used.halfFinished();
    await endLeases(used.service.database);
    used.goThrough();
    expect(await used.service.idempotency.createCompleter().runOnce()).toEqual([]);
    expect(await used.service.pay({ request: REQUEST, requestId })).toMatchObject({ code: status.OK });
    await used.muchLater();
    expect(await used.service.idempotency.createCompleter().runOnce()).toEqual([]);
    expect(await used.record()).toMatchObject({ attempt: 2 });
  });

  it('is one of many who want a request, and one of them gets it', async () => {
    for (let round = 1; round <= 5; round += 1) {
      await used.clear();
      const requestId = await used.halfFinished();
      await used.muchLater();
      used.goThrough();
      const completers = [1, 2].map(() => used.service.idempotency.createCompleter());
      const [retry] = await Promise.all([
        used.service.pay({ request: REQUEST, requestId }),
        ...completers.map((completer) => completer.runOnce()),
      ]);
      expect([status.OK, status.ABORTED]).toContain(retry?.code);
      expect(await used.service.pay({ request: REQUEST, requestId })).toMatchObject({ code: status.OK });
      expect(await used.record()).toMatchObject({ state: 'completed', attempt: 2 });
      expect(await used.service.database.count('payments')).toBe(1);
      expect(await used.service.database.rows('SELECT times FROM charges')).toEqual([{ times: 2 }]);
    }
  });

  it('tries again later and later what fails, until it is parked', async () => {
    await used.halfFinished();
    let tries = 0;
    used.service.handle({
      createPayment: payInSteps(used.service.database, async (point) => {
        if (point === 'begun') tries += 1;
        if (point === 'begun') throw new StatusError(status.UNAVAILABLE, 'the network is away');
      }),
    });
    const completer = used.service.idempotency.createCompleter();
    for (let attempt = 2; attempt <= 10; attempt += 1) {
      await used.muchLater();
      expect(await completer.runOnce()).toEqual(['failed']);
      // Not again at once.
      expect(await completer.runOnce()).toEqual([]);
      expect(await used.record()).toMatchObject({ state: 'claimed', attempt });
    }
    await used.muchLater();
    expect(await completer.runOnce()).toEqual([]);
    expect(await used.record()).toMatchObject({ state: 'parked', attempt: 10 });
    expect(tries).toBe(9);
    expect(used.resumed()[0]).toMatchObject({ result: 'failed', code: status.UNAVAILABLE });
    expect(used.service.events.filter(({ type }) => type === 'parked')).toHaveLength(1);
  });

  it('says once that a request is parked, whoever else finds it tried too often', async () => {
    await used.halfFinished();
    await used.muchLater();
    await used.service.database.rows(
      `UPDATE idempotency_record SET attempt = 10, lease_until = lease_until - interval '1 hour'`,
    );
    const slow = deferred();
    used.look = slow.promise;
    const late = used.service.idempotency.createCompleter().runOnce();
    await until('it looks', async () => used.looks === 1);
    used.look = goOn();
    await used.service.idempotency.createCompleter().runOnce();
    slow.resolve();
    expect(await late).toEqual([]);
    expect(used.service.events.filter(({ type }) => type === 'parked')).toHaveLength(1);
  });

  it('counts what it can not read as an attempt, and says so', async () => {
    await used.halfFinished();
    await used.service.database.rows(`UPDATE idempotency_record SET request = '\\x0a7f'`);
    used.goThrough();
    await used.muchLater();
    const completer = used.service.idempotency.createCompleter();
    expect(await completer.runOnce()).toEqual(['failed']);
    expect(await completer.runOnce()).toEqual([]);
    expect(await used.record()).toMatchObject({ state: 'claimed', attempt: 2 });
    const fault = used.service.events.find(({ type }) => type === 'fault');
    expect(String(fault?.type === 'fault' && fault.error)).toContain('is not a message that its method takes');
  });

  it('is told when another attempt got ahead while it ran', async () => {
    await used.halfFinished();
    await used.muchLater();
    used.service.handle({
      createPayment: async (message, attempt) => {
        await used.service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid()');
        return payInSteps(used.service.database, goOn)(message, attempt);
      },
    });
    expect(await used.service.idempotency.createCompleter().runOnce()).toEqual(['overtaken']);
    expect(await used.service.database.count('payments')).toBe(0);
  });

  it('keeps the lease of what it runs', async () => {
    const renewals: number[] = [];
    const short = await used.another({
      policy: { resume: true, leaseMs: 300 },
      onEvent: ({ type }) => type === 'renewal' && renewals.push(1),
    });
    try {
      await used.halfFinished();
      await used.muchLater();
      short.handle({
        createPayment: payInSteps(used.service.database, async (point) => {
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
    const requestId = await used.halfFinished();
    used.goThrough();
    const [hangUp, slow] = [new AbortController(), deferred()];
    used.onGranted = async () => {
      hangUp.abort();
      await slow.promise;
    };
    expect(await used.service.pay({ request: REQUEST, requestId, signal: hangUp.signal })).toMatchObject({
      code: status.CANCELLED,
    });
    // Whatever the server does on the same connection comes after the cancel has reached it.
    await used.service.client.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
    slow.resolve();
    await until('its lease was ended', async () => used.service.events.some(({ type }) => type === 'lease_ended'));
    expect(await used.record()).toMatchObject({ state: 'claimed', attempt: 1 });
    await used.muchLater();
    expect(await used.service.idempotency.createCompleter().runOnce()).toEqual(['completed']);
  });
});
