import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { NetworkFault } from '../../src/card-network/faults';
import { newRequestId } from '../../src/idempotency/index';
import { createOutbox } from '../../src/outbox/outbox';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { createPaymentsService } from '../../src/payments/payments-service';
import { startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from '../support/payments-with-network';
import { startTestService } from '../support/service';
import { createStockClient, type StockAnswer, type StockCall } from '../support/stock-client';
import { endLeases } from '../support/stored-record';

// Two services on one busy database.
jest.setTimeout(60_000);

const PAID_MINOR = 1_250;

describe('RefundPayment in phases, with a card network behind it (design 4.10)', () => {
  let used: PaymentsWithNetwork;

  beforeAll(async () => (used = await startPaymentsWithNetwork({ networkTimeoutMs: 2_000 })));
  beforeEach(() => {
    used.hold(() => Promise.resolve());
    for (const list of [used.faults, used.decisions, used.keysAsked]) list.length = 0;
  });
  afterAll(() => used.stop());

  const pay = async (): Promise<string> => {
    const request = paymentRequest({ amount_minor: String(PAID_MINOR) });
    const paid = await used.client.call({ method: 'CreatePayment', request, requestId: newRequestId() });
    used.keysAsked.length = 0;
    return paid.response?.payment.payment_id ?? '';
  };
  const refund = (paymentId: string, amountMinor: number, change: object = {}): StockCall => ({
    method: 'RefundPayment',
    request: { payment_id: paymentId, amount_minor: String(amountMinor), reason: 'too small', ...change },
    requestId: newRequestId(),
  });

  /** What was given back of a payment, by our books and by those of the network. */
  const givenBack = async (paymentId: string) => {
    const [row] = await used.database.rows<Record<string, number>>(
      `SELECT
         (SELECT coalesce(sum(amount_minor), 0)::int FROM refunds WHERE payment_id = $1::uuid) AS ours,
         (SELECT count(*)::int FROM refunds WHERE payment_id = $1::uuid AND state = 'reserved') AS reserved,
         (SELECT coalesce(sum(amount_minor), 0)::int FROM card_network_refunds WHERE authorization_id =
            (SELECT authorization_id::uuid FROM payments WHERE payment_id = $1::uuid)) AS network`,
      [paymentId],
    );
    return row;
  };

  it('gives back what was asked for, once however often it is asked, and tells which refund it was', async () => {
    const paymentId = await pay();
    const call = refund(paymentId, 250);
    const first = await used.client.call(call);
    const again = await used.client.call(call);
    expect(first.code).toBe(status.OK);
    expect(first.response).toMatchObject({
      refund: { payment_id: paymentId, amount_minor: '250', currency: 'EUR', reason: 'too small' },
    });
    expect(again.bytes).toEqual(first.bytes);
    expect(again.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await givenBack(paymentId)).toEqual({ ours: 250, reserved: 0, network: 250 });
  });

  it('refuses more than is left, says what is, and replays the refusal', async () => {
    const paymentId = await pay();
    await used.client.call(refund(paymentId, 1_000));
    const call = refund(paymentId, 251);
    for (const answer of [await used.client.call(call), await used.client.call(call)]) {
      expect(answer.code).toBe(status.FAILED_PRECONDITION);
      expect(answer.error).toMatchObject({ reason: 'REFUND_EXCEEDS_PAYMENT', domain: 'payments.v1' });
      expect(answer.error.metadata.get('refundable_minor')).toBe('250');
    }
    expect((await used.client.call(refund(paymentId, 250))).code).toBe(status.OK);
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
  });

  it('fifty at once with different keys, through two services, never give back more than was paid', async () => {
    const paymentId = await pay();
    const { connectionString } = used.database;
    const second = await startTestService({
      connectionString,
      environment: { CARD_NETWORK_ADDRESS: used.network.address },
      useNetwork: true,
    });
    const client = createStockClient(second.grpcPort);
    const calls = Array.from({ length: 50 }, () => refund(paymentId, 100));
    const send = (call: StockCall, at: number): Promise<StockAnswer> =>
      callUntilAnswered(at % 2 === 0 ? used.client : client, call).then(({ answer }) => answer);
    const answers = await Promise.all(calls.map(send));
    const replays = await Promise.all(calls.map(send));
    client.close();
    await second.stop();
    const codes = answers.map(({ code }) => code);
    expect(codes.filter((code) => code === status.OK)).toHaveLength(12);
    expect(codes.filter((code) => code === status.FAILED_PRECONDITION)).toHaveLength(38);
    expect(replays.map(({ code, bytes }) => [code, bytes])).toEqual(answers.map(({ code, bytes }) => [code, bytes]));
    expect(await givenBack(paymentId)).toEqual({ ours: 1_200, reserved: 0, network: 1_200 });
  });

  it('counts a refund that is under way: what it has reserved can not be refunded twice', async () => {
    const paymentId = await pay();
    const asked = deferred();
    const answer = deferred();
    used.hold(async (point) => {
      if (point !== 'before') return;
      asked.resolve();
      await answer.promise;
    });
    const first = used.client.call(refund(paymentId, 1_000));
    await asked.promise;
    expect(await used.client.call(refund(paymentId, 1_000))).toMatchObject({
      code: status.FAILED_PRECONDITION,
      error: { reason: 'REFUND_EXCEEDS_PAYMENT' },
    });
    answer.resolve();
    expect((await first).code).toBe(status.OK);
    expect(await givenBack(paymentId)).toEqual({ ours: 1_000, reserved: 0, network: 1_000 });
  });

  it.each<readonly [string, NetworkFault]>([
    ['loses its answer', { kind: 'lost_answer' }],
    ['answers nonsense', { kind: 'nonsense' }],
    ['is away', { kind: 'outage' }],
  ])('where the network %s, it stays reserved, and the retry asks under the same key', async (_, fault) => {
    const paymentId = await pay();
    used.faults.push(...Array.from({ length: 6 }, () => fault));
    const call = refund(paymentId, 300);
    expect(await used.client.call(call)).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'CARD_NETWORK_UNAVAILABLE' },
    });
    expect(await givenBack(paymentId)).toMatchObject({ ours: 300, reserved: 1 });
    used.faults.length = 0;
    expect((await callUntilAnswered(used.client, call)).answer.code).toBe(status.OK);
    expect(new Set(used.keysAsked).size).toBe(1);
    expect(await givenBack(paymentId)).toEqual({ ours: 300, reserved: 0, network: 300 });
  });

  it('an attempt that was overtaken gives nothing back a second time, and is told the recorded answer', async () => {
    const paymentId = await pay();
    const held = deferred();
    const wake = deferred();
    used.hold(async (point, time) => {
      if (point !== 'before' || time !== 1) return;
      held.resolve();
      await wake.promise;
    });
    const call = refund(paymentId, 400);
    const stale = used.client.call(call);
    await held.promise;
    await endLeases(used.database);
    const winner = await used.client.call(call);
    wake.resolve();
    expect(winner.code).toBe(status.OK);
    expect((await stale).bytes).toEqual(winner.bytes);
    expect(await givenBack(paymentId)).toEqual({ ours: 400, reserved: 0, network: 400 });
  });

  it('refuses a cancelled payment, and records that', async () => {
    const paymentId = await pay();
    await used.client.call({ method: 'CancelPayment', request: { payment_id: paymentId } });
    expect(await used.client.call(refund(paymentId, 1))).toMatchObject({
      code: status.FAILED_PRECONDITION,
      error: { reason: 'PAYMENT_NOT_REFUNDABLE' },
    });
  });

  it('keeps no record of what it can not look for or find', async () => {
    const paymentId = await pay();
    const records = await used.database.count('idempotency_record');
    const answers = [
      await used.client.call(refund(randomUUID(), 1)),
      await used.client.call(refund('payment-1', 0, { reason: 'x'.repeat(129) })),
      await used.client.call({ ...refund(paymentId, 1), requestId: undefined }),
    ];
    expect(answers.map(({ code }) => code)).toEqual([
      status.NOT_FOUND,
      status.INVALID_ARGUMENT,
      status.INVALID_ARGUMENT,
    ]);
    expect(answers[1]?.details).toMatch(/payment_id: .*; amount_minor: .*; reason: /);
    expect(await used.database.count('idempotency_record')).toBe(records);
  });
});

describe('a payment of another account', () => {
  it('is as unknown to RefundPayment as one that never was', async () => {
    const service = await startAttemptService({
      principal: ({ metadata }) => metadata.get('account')[0]?.toString() ?? 'account-1',
    });
    const authorizer = createStandInAuthorizer();
    const prisma = service.connections.business;
    const options = { prisma, authorizer, outbox: createOutbox(), onPaymentCreated: () => undefined };
    service.handle(createPaymentsService(options));
    const paid = await service.pay();
    const call = {
      method: 'RefundPayment',
      request: { payment_id: paid.response?.payment.payment_id, amount_minor: '1' },
    };
    const theirs = { ...call, requestId: newRequestId(), metadata: { account: 'account-2' } };
    expect((await service.client.call(theirs)).code).toBe(status.NOT_FOUND);
    expect(await service.database.count('refunds')).toBe(0);
    expect((await service.client.call({ ...call, requestId: newRequestId() })).code).toBe(status.OK);
    await service.stop();
  });
});
