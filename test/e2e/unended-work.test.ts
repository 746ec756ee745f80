import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { endsWithin } from '../../src/ends-within';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';

/** Much longer than anything here takes. */
const SOON_MS = 10_000;
const forEver = <Value>() => new Promise<Value>(() => undefined);

const expectIdleSoon = async ({ idempotency }: AttemptService): Promise<void> => {
  expect(await endsWithin(SOON_MS, idempotency.idle())).toBe(true);
};

describe('a principal that gives no answer (design 4.3)', () => {
  it.each([
    ['CreatePayment', { request: paymentRequest({ order_id: 'order-1' }), requestId: randomUUID() }],
    ['GetPayment', { request: { payment_id: randomUUID() } }],
  ])('keeps nobody once its caller has gone, and nothing is done for that caller: %s', async (method, call) => {
    const answer = deferred<string>();
    const asked = deferred();
    const service = await startAttemptService({
      principal: () => {
        asked.resolve();
        return answer.promise;
      },
    });
    try {
      let runs = 0;
      const run = () => {
        runs += 1;
        return Promise.reject(new Error('not to be run'));
      };
      service.handle({ createPayment: run, getPayment: run });
      const gone = service.client.call({ method, ...call, deadlineMs: 300 });
      await asked.promise;
      expect((await gone).code).toBe(status.DEADLINE_EXCEEDED);

      await expectIdleSoon(service);

      answer.resolve('account-1');
      await service.idempotency.idle();
      expect(runs).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);
      // A keyed call has its line all the same (design 3.5), or nothing would tell of a directory that is away.
      const told = method === 'GetPayment' ? [] : ['admitted', 'call'];
      expect(service.events.map(({ type }) => type)).toEqual(told);
      for (const event of service.events) expect(event).toMatchObject({ outcome: 'principal_missing' });
    } finally {
      await service.stop();
    }
  });

  it('does not keep a server from ending either', async () => {
    let asked = 0;
    const service = await startAttemptService({ principal: () => (++asked === 1 ? forEver() : 'account-1') });
    service.handle({ createPayment: payAndComplete });
    const cut = service.pay();
    // On the same connection, so that the first call has arrived before it.
    expect((await service.pay()).code).toBe(status.OK);

    expect(await endsWithin(SOON_MS, service.stop())).toBe(true);
    expect((await cut).code).not.toBe(status.OK);
  });
});

describe('a completion that its handler did not await (design 4.8)', () => {
  it('is waited for, although its claim was given up: the database ends it', async () => {
    const service = await startAttemptService();
    const [begun, goOn] = [deferred(), deferred()];
    service.handle({
      createPayment: async (request, attempt) => {
        void attempt.complete(async (tx) => {
          begun.resolve();
          await goOn.promise;
          return recordPayment(tx, request, attempt);
        });
        await begun.promise;
        throw new Error('gave up');
      },
    });
    const answer = service.pay();
    await begun.promise;
    await service.idempotency.abandon();

    expect(await endsWithin(300, service.idempotency.idle())).toBe(false);

    goOn.resolve();
    await expectIdleSoon(service);
    expect(await answer).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(await service.database.count('payments')).toBe(0);
    await service.stop();
  });
});

describe('an effect that never ends, of a handler that did not await it (design 4.10)', () => {
  const LEASE_MS = 1_500;
  let service: AttemptService;

  beforeEach(async () => {
    service = await startAttemptService({ policy: { leaseMs: LEASE_MS, maxExecutionMs: 2 * LEASE_MS } });
  });

  afterEach(() => service.stop());

  const forget = () => {
    const begun = deferred();
    service.handle({
      createPayment: async (_, attempt) => {
        void attempt.effect('charge', () => {
          begun.resolve();
          return forEver();
        });
        await begun.promise;
        throw new Error('gave up');
      },
    });
    return begun.promise;
  };

  it('is not waited for by a server that has given its attempts up', async () => {
    const begun = forget();
    const answer = service.pay();
    await begun;

    await service.idempotency.abandon();

    await expectIdleSoon(service);
    expect(await answer).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
  });

  it('is given up with its lease at the end of max_execution, and the retry goes on', async () => {
    const begun = forget();
    const call = { method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId: randomUUID() };
    const first = service.client.call(call);
    await begun;

    expect(await first).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });

    await expectIdleSoon(service);
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.effect('charge', () => Promise.resolve('charged'));
        return payAndComplete(request, attempt);
      },
    });
    expect((await callUntilAnswered(service.client, call)).answer.code).toBe(status.OK);
    expect(await service.database.count('payments')).toBe(1);
  });
});
