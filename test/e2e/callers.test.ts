import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { Principal } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService, toldText } from '../support/attempt-service';
import { paymentRequest } from '../support/payment-requests';

describe('who calls', () => {
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
