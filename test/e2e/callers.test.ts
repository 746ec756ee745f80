import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { Payment } from '../../src/gen/proto/payments/v1/payments';
import type { Principal } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService, toldText } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';

describe('who calls (design 4.3)', () => {
  let service: AttemptService;
  let handled = 0;
  let principal: Principal;

  beforeAll(async () => {
    service = await startAttemptService({ principal: (call) => principal(call) });
  });

  beforeEach(async () => {
    handled = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({
      createPayment: (request, attempt) => {
        handled += 1;
        return payAndComplete(request, attempt);
      },
      getPayment: () => {
        handled += 1;
        return Promise.resolve({ payment: undefined });
      },
    });
  });

  afterAll(() => service.stop());

  const byAccountHeader: Principal = async ({ metadata }) => {
    await nextTurn();
    return metadata.get('account')[0]?.toString();
  };

  it.each(['CreatePayment', 'GetPayment'])('must be known to call %s, before anything is looked up', async (method) => {
    for (const unknown of [undefined, '', Promise.resolve(undefined)]) {
      principal = () => unknown;
      const answer = await service.client.call({ method, request: {}, requestId: randomUUID() });

      expect(answer).toMatchObject({
        code: status.UNAUTHENTICATED,
        error: { reason: 'PRINCIPAL_MISSING', domain: 'idempotency.v1' },
      });
      expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    }
    expect(handled).toBe(0);
    expect(service.events.filter(({ type }) => type === 'claim')).toEqual([]);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  const failures: readonly [string, Principal][] = [
    [
      'throws',
      () => {
        throw new Error('ldap://directory.internal is away');
      },
    ],
    ['rejects', () => Promise.reject(new Error('ldap://directory.internal is away'))],
  ];

  it.each(failures)(
    'is a fault of ours where the principal %s, of which the caller learns nothing',
    async (_, fails) => {
      principal = fails;

      const answer = await service.pay();

      expect(answer.code).toBe(status.INTERNAL);
      expect(toldText(answer)).toBe('internal error');
      const [fault] = service.events.filter((event) => event.type === 'fault');
      expect(fault?.what).toBe('the call could not be admitted');
      expect(String(fault?.error)).toContain('directory.internal');
      expect(handled).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);
    },
  );

  it('keeps keys apart: two accounts with one key never meet (case F1)', async () => {
    principal = byAccountHeader;
    const requestId = randomUUID();
    const payAs = (account: string, orderId: string) =>
      service.pay({ requestId, metadata: { account }, request: paymentRequest({ order_id: orderId }) });

    const squatter = await payAs('account-2', 'order-2');
    const first = await payAs('account-1', 'order-1');
    const again = await payAs('account-1', 'order-1');
    const other = await payAs('account-1', 'order-2');

    expect([squatter.code, first.code, again.code]).toEqual([status.OK, status.OK, status.OK]);
    expect(again.bytes).toEqual(first.bytes);
    expect(first.trailers.get('idempotent-replayed')).toEqual([]);
    expect(first.response?.payment.payment_id).not.toBe(squatter.response?.payment.payment_id);
    expect(other).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    expect(await service.database.rows('SELECT scope, order_id FROM payments ORDER BY scope')).toEqual([
      { scope: 'account-1', order_id: 'order-1' },
      { scope: 'account-2', order_id: 'order-2' },
    ]);
    expect(await service.database.rows('SELECT scope FROM idempotency_record ORDER BY scope')).toHaveLength(2);
  });

  it('is told nothing by what a caller says of itself: only the principal scopes a key (case F1)', async () => {
    principal = () => 'account-1';
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    const again = await service.pay({ requestId, metadata: { account: 'account-2', scope: 'account-2', tenant: 'x' } });
    expect(again.bytes).toEqual(first.bytes);
    expect(await service.database.rows('SELECT scope FROM idempotency_record')).toEqual([{ scope: 'account-1' }]);
  });

  it('gets no replay once it is unknown: who was revoked is told nothing (design 4.3)', async () => {
    principal = () => 'account-1';
    const requestId = randomUUID();
    await service.pay({ requestId });
    principal = () => undefined;
    const revoked = await service.pay({ requestId });
    expect(revoked).toMatchObject({ code: status.UNAUTHENTICATED, bytes: undefined });
    expect(revoked.trailers.get('idempotent-replayed')).toEqual([]);
    expect(revoked.trailers.get('idempotency-expires-at')).toEqual([]);
  });

  it('is captured when the call starts, whatever becomes of the connection meanwhile (design 4.3)', async () => {
    const [started, proceed] = [deferred(), deferred()];
    let scope: string | undefined;
    principal = () => 'account-1';
    service.handle({
      createPayment: async (request, attempt) => {
        started.resolve();
        await proceed.promise;
        scope = attempt.scope;
        return payAndComplete(request, attempt);
      },
    });
    const hangUp = new AbortController();
    const gone = service.pay({ signal: hangUp.signal });
    await started.promise;
    hangUp.abort();
    await gone;
    principal = () => 'account-2';
    proceed.resolve();
    await service.idempotency.idle();
    expect(scope).toBe('account-1');
    expect(await service.database.rows('SELECT scope FROM payments')).toEqual([{ scope: 'account-1' }]);
  });

  it('keeps methods apart: one key on two of them is two requests, even with the same bytes (case F2)', async () => {
    principal = () => 'account-1';
    const requestId = randomUUID();
    const ran: string[] = [];
    const payment = (paymentId: string) => ({ payment: Payment.create({ paymentId }) });
    service.handle({
      createPayment: ({ orderId }, attempt) =>
        attempt.complete(() => Promise.resolve(payment(ran.push(`create ${orderId}`) === 1 ? 'created' : 'twice'))),
      updatePayment: ({ paymentId }, attempt) =>
        attempt.complete(() => Promise.resolve(payment(ran.push(`update ${paymentId}`) === 2 ? 'updated' : 'twice'))),
    });
    // The first field of both is a text: the bytes are the same.
    const create = { method: 'CreatePayment', request: { order_id: 'one' }, requestId };
    const update = { method: 'UpdatePayment', request: { payment_id: 'one' }, requestId };
    const told = [];
    for (const call of [create, update, create, update]) told.push(await service.client.call(call));

    expect(told.map(({ response }) => response?.payment.payment_id)).toEqual([
      ...['created', 'updated', 'created', 'updated'],
    ]);
    expect(told.map(({ trailers }) => trailers.get('idempotent-replayed').length)).toEqual([0, 0, 1, 1]);
    expect(ran).toEqual(['create one', 'update one']);
    expect(await service.database.count('idempotency_record')).toBe(2);
  });

  // Ours is not to know which metadata changes the meaning: that belongs into the message (docs/handlers.md).
  it('is told the answer to its message: one that differs in metadata alone is the same request (case F2)', async () => {
    principal = () => 'account-1';
    const requestId = randomUUID();
    const dryRun = await service.pay({ requestId, metadata: { 'dry-run': 'true' } });
    const live = await service.pay({ requestId });
    expect(live.bytes).toEqual(dryRun.bytes);
    expect(live.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(handled).toBe(1);
  });

  it('is asked once per call, with the method, the metadata and the address', async () => {
    const asked: unknown[] = [];
    principal = ({ path, peer, metadata }) => {
      asked.push([path, peer.startsWith('127.0.0.1:'), metadata.get('account')]);
      return 'account-1';
    };

    await service.pay({ metadata: { account: 'seven' } });

    expect(asked).toEqual([['/payments.v1.PaymentsService/CreatePayment', true, ['seven']]]);
  });
});
