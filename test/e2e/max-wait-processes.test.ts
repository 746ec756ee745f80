import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { payAndComplete } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { endLeases } from '../support/stored-record';
import {
  expectInProgress,
  expectReplay,
  holdPayments,
  startWaitingService,
  type WaitingService,
} from '../support/waiting-service';

describe('a duplicate in another process (design 4.9)', () => {
  let here: WaitingService;
  let there: WaitingService;

  beforeAll(async () => {
    here = await startWaitingService();
    there = await startWaitingService({ database: { ...here.database, drop: () => Promise.resolve() } });
  });

  beforeEach(() => here.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(async () => {
    await there.stop();
    await here.stop();
  });

  it('waits for the attempt and gets its answer', async () => {
    const gate = holdPayments(here);
    there.handle({});
    const requestId = randomUUID();
    const before = there.duplicates();
    const first = here.pay({ requestId });
    await gate.started.promise;
    const waiting = Array.from({ length: 5 }, () => there.pay({ requestId }));
    await there.met(before + 5);
    gate.proceed.resolve();

    for (const answer of await Promise.all(waiting)) expectReplay(answer, await first);
    expect(await here.database.count('payments')).toBe(1);
  });

  it('takes over when the lease of a dead owner is over, and the zombie gets the answer of its heir', async () => {
    const gate = holdPayments(here);
    there.handle({ createPayment: payAndComplete });
    const requestId = randomUUID();
    const before = there.duplicates();
    const zombie = here.pay({ requestId });
    await gate.started.promise;
    const waiting = [there.pay({ requestId }), there.pay({ requestId })];
    await there.met(before + 2);
    await endLeases(here.database);

    const answers = await Promise.all(waiting);
    expect(answers.map(({ code }) => code)).toEqual([status.OK, status.OK]);
    expect(answers[0]?.bytes).toEqual(answers[1]?.bytes);
    gate.proceed.resolve();
    const [heir] = answers;
    if (heir !== undefined) expectReplay(await zombie, heir);
    expect(await here.database.rows('SELECT state, attempt FROM idempotency_record')).toEqual([
      { state: 'completed', attempt: 2 },
    ]);
    expect(await here.database.count('payments')).toBe(1);
  });
});

describe('duplicates behind a row that somebody has in hand, its lease over (design 4.9)', () => {
  let service: WaitingService;

  beforeAll(async () => {
    service = await startWaitingService();
  });

  afterAll(() => service.stop());

  it('do not ask for it again and again, and one of them takes over when it is let go', async () => {
    const gate = holdPayments(service);
    const requestId = randomUUID();
    const dead = service.pay({ requestId });
    await gate.started.promise;
    const keeper = await service.database.pool.connect();
    await endLeases(service.database);
    await keeper.query('BEGIN');
    await keeper.query('SELECT FROM idempotency_record FOR UPDATE');
    service.handle({ createPayment: payAndComplete });
    const waiting = Array.from({ length: 20 }, () => service.pay({ requestId }));
    // Each has asked three times, or others oftener.
    await service.met(60);
    const pausesMs = [...service.pausesMs()];
    await keeper.query('ROLLBACK');
    keeper.release();

    const answers = await Promise.all(waiting);
    // A look at the database, 50 ms later, would have ended each wait.
    expect(pausesMs.length).toBeGreaterThanOrEqual(40);
    expect(Math.min(...pausesMs)).toBeGreaterThan(200);
    expect(answers.map(({ code }) => code)).toEqual(Array(20).fill(status.OK));
    gate.proceed.resolve();
    expect((await dead).code).toBe(status.OK);
    expect(await service.database.count('payments')).toBe(1);
  });
});

describe('a duplicate that may go on when its process is full (design 4.7, 4.9)', () => {
  let here: WaitingService;
  let there: WaitingService;

  beforeAll(async () => {
    here = await startWaitingService();
    const database = { ...here.database, drop: () => Promise.resolve() };
    there = await startWaitingService({ database, server: { mostAttempts: 2 } });
  });

  afterAll(async () => {
    await there.stop();
    await here.stop();
  });

  it('does not run as one too many: it is asked to come back', async () => {
    const owner = holdPayments(here, () => Promise.reject(new StatusError(status.ABORTED, 'changed my mind')));
    const requestId = randomUUID();
    const first = here.pay({ requestId });
    await owner.started.promise;
    const waiting = there.pay({ requestId });
    await there.met(1);
    const [twoRun, proceed] = [deferred(), deferred()];
    let runs = 0;
    there.handle({
      createPayment: async (request, attempt) => {
        if ((runs += 1) === 2) twoRun.resolve();
        await proceed.promise;
        return payAndComplete(request, attempt);
      },
    });
    const running = [there.pay(), there.pay()];
    await twoRun.promise;
    owner.proceed.resolve();
    expect((await first).code).toBe(status.ABORTED);

    expectInProgress(await waiting);
    expect(runs).toBe(2);
    proceed.resolve();
    expect((await Promise.all(running)).map(({ code }) => code)).toEqual([status.OK, status.OK]);
  });
});

describe('a hundred waiting duplicates where the pools have one connection each (design 4.9, case K5)', () => {
  let service: WaitingService;

  beforeAll(async () => {
    service = await startWaitingService({ pools: { businessPoolSize: 1, storePoolSize: 1 } });
  });

  afterAll(() => service.stop());

  it('hold none: other keys go through meanwhile, and all get the answer', async () => {
    const gate = holdPayments(service);
    const requestId = randomUUID();
    const first = service.pay({ requestId });
    await gate.started.promise;
    const waiting = Array.from({ length: 100 }, () => service.pay({ requestId }));
    await service.met(100);

    const others = await Promise.all(
      Array.from({ length: 10 }, () => service.pay({ request: paymentRequest({ order_id: 'order-2' }) })),
    );

    expect(others.map(({ code }) => code)).toEqual(Array(10).fill(status.OK));
    gate.proceed.resolve();
    for (const answer of await Promise.all(waiting)) expectReplay(answer, await first);
    expect(await service.database.count("payments WHERE order_id = 'order-1'")).toBe(1);
  });
});
