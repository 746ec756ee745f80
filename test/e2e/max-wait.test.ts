import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { payAndComplete } from '../support/attempt-service';
import { paymentRequest } from '../support/payment-requests';
import {
  expectInProgress,
  expectReplay,
  holdPayments,
  startWaitingService,
  type WaitingService,
} from '../support/waiting-service';

describe('a duplicate of a method with max_wait (design 4.9)', () => {
  let service: WaitingService;

  beforeAll(async () => {
    service = await startWaitingService();
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));
  afterAll(() => service.stop());

  it('waits for the attempt of its own process and gets its answer', async () => {
    const gate = holdPayments(service);
    const requestId = randomUUID();
    const before = service.duplicates();
    const first = service.pay({ requestId });
    await gate.started.promise;
    const waiting = [service.pay({ requestId }), service.pay({ requestId })];
    await service.met(before + 2);
    gate.proceed.resolve();

    for (const answer of await Promise.all(waiting)) expectReplay(answer, await first);
    expect(gate.runs()).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    const outcomes = service.events.flatMap((event) => (event.type === 'admitted' ? [event.outcome] : []));
    expect(outcomes).toEqual(['claimed', 'replayed', 'replayed']);
  });

  it('runs by itself when that attempt gives the key back, and the others wait on', async () => {
    const gate = holdPayments(service, (request, attempt) =>
      gate.runs() === 1
        ? Promise.reject(new StatusError(status.UNAVAILABLE, 'the card network is away'))
        : payAndComplete(request, attempt),
    );
    const requestId = randomUUID();
    const before = service.duplicates();
    const first = service.pay({ requestId });
    await gate.started.promise;
    const waiting = [service.pay({ requestId }), service.pay({ requestId }), service.pay({ requestId })];
    await service.met(before + 3);
    gate.proceed.resolve();

    expect((await first).code).toBe(status.UNAVAILABLE);
    const answers = await Promise.all(waiting);
    expect(answers.map(({ code }) => code)).toEqual([status.OK, status.OK, status.OK]);
    expect(new Set(answers.map(({ bytes }) => bytes?.toString('hex'))).size).toBe(1);
    expect(gate.runs()).toBe(2);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('with other content is refused at once, before anything else is said (design 4.4)', async () => {
    const gate = holdPayments(service);
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await gate.started.promise;

    const other = await service.pay({ requestId, request: paymentRequest({ order_id: 'order-2' }) });

    expect(other).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    gate.proceed.resolve();
    expect((await first).code).toBe(status.OK);
  });

  it('is answered before its own deadline, with the hint', async () => {
    const gate = holdPayments(service);
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await gate.started.promise;

    expectInProgress(await service.pay({ requestId, deadlineMs: 1_000 }));
    gate.proceed.resolve();
    expect((await first).code).toBe(status.OK);
  });

  it('needs no look at the database for an attempt of its own process', async () => {
    // All that the database says is that every attempt still runs.
    const blind = await startWaitingService({
      wrapStore: (store) => ({ ...store, stillRunning: (places) => Promise.resolve(places) }),
    });
    try {
      const gate = holdPayments(blind);
      const requestId = randomUUID();
      const first = blind.pay({ requestId });
      await gate.started.promise;
      const waiting = blind.pay({ requestId });
      await blind.met(1);
      gate.proceed.resolve();
      expectReplay(await waiting, await first);
    } finally {
      await blind.stop();
    }
  });

  it('that hangs up makes room: nobody waits in its place', async () => {
    const small = await startWaitingService({ server: { mostWaiting: 1 } });
    try {
      const gate = holdPayments(small);
      const requestId = randomUUID();
      const first = small.pay({ requestId });
      await gate.started.promise;
      const hangUp = new AbortController();
      const gone = small.pay({ requestId, signal: hangUp.signal });
      await small.met(1);
      // The bound: there is room for one.
      expectInProgress(await small.pay({ requestId }));

      hangUp.abort();
      expect((await gone).code).toBe(status.CANCELLED);
      // Whatever the server does on the same connection comes after the cancel has reached it.
      await small.client.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
      const waiting = small.pay({ requestId });
      await small.met(3);
      gate.proceed.resolve();
      expectReplay(await waiting, await first);
    } finally {
      await small.stop();
    }
  });
});

describe('a duplicate whose max_wait is over (design 4.9)', () => {
  let service: WaitingService;

  beforeAll(async () => {
    service = await startWaitingService({ policy: { maxWaitMs: 300 } });
  });

  afterAll(() => service.stop());

  it('is refused with the hint, not earlier, and its retry gets the answer', async () => {
    const gate = holdPayments(service);
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await gate.started.promise;
    const askedAtMs = performance.now();

    expectInProgress(await service.pay({ requestId }));

    expect(performance.now() - askedAtMs).toBeGreaterThanOrEqual(290);
    gate.proceed.resolve();
    const answer = await first;
    expectReplay(await service.pay({ requestId }), answer);
  });
});
