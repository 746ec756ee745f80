import { status } from '@grpc/grpc-js';
import { connect } from '../../src/database/connect';
import { PaymentState } from '../../src/gen/proto/payments/v1/payments';
import { newRequestId } from '../../src/idempotency/index';
import type { Authorizer } from '../../src/payments/authorizer';
import { createRefundDelivery } from '../../src/payments/deliver-refund';
import { createNetworkAuthorizer } from '../../src/payments/network-authorizer';
import { REFUND_RESERVED } from '../../src/payments/refund-event';
import { callUntilAnswered } from '../support/call-until-answered';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from '../support/payments-with-network';
import type { StockAnswer } from '../support/stock-client';
import { until } from '../support/until';

// Two services on one busy database.
jest.setTimeout(60_000);

describe('CancelPayment gives back what the card network holds, though it takes no key', () => {
  let used: PaymentsWithNetwork;
  const mails: string[] = [];

  beforeAll(async () => {
    used = await startPaymentsWithNetwork({
      networkTimeoutMs: 2_000,
      deliver: ({ aggregateId }) => Promise.resolve(void mails.push(aggregateId)),
    });
  });
  beforeEach(() => {
    used.hold(() => Promise.resolve());
    for (const list of [used.faults, used.decisions, used.keysAsked, used.arrived]) list.length = 0;
  });
  afterAll(() => used.stop());

  const pay = async (request = paymentRequest()): Promise<string> => {
    const paid = await used.client.call({ method: 'CreatePayment', request, requestId: newRequestId() });
    used.keysAsked.length = 0;
    return paid.response?.payment.payment_id ?? '';
  };
  const cancel = (paymentId: string): Promise<StockAnswer> =>
    used.client.call({ method: 'CancelPayment', request: { payment_id: paymentId } });
  const refund = (paymentId: string, amount_minor: string): Promise<StockAnswer> =>
    used.client.call({
      ...{ method: 'RefundPayment', requestId: newRequestId() },
      request: { payment_id: paymentId, amount_minor, reason: 'broken' },
    });
  /** What was given back of a payment, by our books and by those of the network. */
  const givenBack = async (paymentId: string) => {
    const [row] = await used.database.rows<Record<string, number>>(
      `SELECT
         (SELECT coalesce(sum(amount_minor), 0)::int FROM refunds WHERE payment_id = $1::uuid AND state = 'done') AS ours,
         (SELECT count(*)::int FROM refunds WHERE payment_id = $1::uuid AND state = 'reserved') AS reserved,
         (SELECT coalesce(sum(amount_minor), 0)::int FROM card_network_refunds WHERE authorization_id =
            (SELECT authorization_id::uuid FROM payments WHERE payment_id = $1::uuid)) AS network`,
      [paymentId],
    );
    return row;
  };
  const settled = () =>
    until(
      'all events are delivered',
      async () => (await used.database.count("outbox_events WHERE state <> 'delivered'")) === 0,
      20_000,
    );

  it('all of it, once however often and however many at once ask for it', async () => {
    const paymentId = await pay();
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => cancel(paymentId)));
    answers.push(await cancel(paymentId));
    for (const { code, response } of answers) {
      expect(code).toBe(status.OK);
      expect(response).toMatchObject({
        payment: { payment_id: paymentId, state: PaymentState.PAYMENT_STATE_CANCELLED },
      });
    }
    expect(new Set(answers.map(({ bytes }) => bytes?.toString('hex'))).size).toBe(1);
    await settled();
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
    expect(used.keysAsked).toHaveLength(1);
    expect(mails).toEqual([paymentId]);
  });

  it('what refunds have left of it, also where one of them is under way', async () => {
    const paymentId = await pay();
    await refund(paymentId, '250');
    const [asked, goOn] = [deferred(), deferred()];
    used.hold(async (point, time) => {
      if (point !== 'before' || time !== 2) return;
      asked.resolve();
      await goOn.promise;
    });
    const refunding = refund(paymentId, '100');
    await asked.promise;
    expect((await cancel(paymentId)).code).toBe(status.OK);
    await settled();
    expect(await givenBack(paymentId)).toEqual({ ours: 1_150, reserved: 1, network: 1_150 });
    goOn.resolve();
    expect((await refunding).code).toBe(status.OK);
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
  });

  it('nothing where nothing is left, and the network is not asked', async () => {
    const paymentId = await pay();
    await refund(paymentId, '1250');
    used.keysAsked.length = 0;
    const before = await used.database.count('outbox_events');
    expect((await cancel(paymentId)).code).toBe(status.OK);
    await settled();
    expect(used.keysAsked).toEqual([]);
    expect(await used.database.count('outbox_events')).toBe(before);
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
  });

  it('nothing of a payment that was cancelled before, whoever did', async () => {
    const paymentId = await pay();
    await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [paymentId]);
    const before = await used.database.count('outbox_events');
    expect((await cancel(paymentId)).code).toBe(status.OK);
    expect(await used.database.count('outbox_events')).toBe(before);
    expect(await givenBack(paymentId)).toEqual({ ours: 0, reserved: 0, network: 0 });
  });

  it('once, where the network’s answer is lost and the event is delivered again', async () => {
    const paymentId = await pay();
    used.hold((point, time) =>
      point === 'after' && time === 1 ? Promise.reject(new Error('the answer is lost')) : Promise.resolve(),
    );
    await cancel(paymentId);
    await settled();
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
    expect(used.keysAsked).toHaveLength(2);
    expect(new Set(used.keysAsked).size).toBe(1);
  });

  it('once, where its event is sent again under a new id after it had its effect', async () => {
    const paymentId = await pay();
    await cancel(paymentId);
    await settled();
    const [row] = await used.database.rows<{ id: string }>(
      `UPDATE refunds SET state = 'reserved', network_refund_id = NULL WHERE payment_id = $1 RETURNING refund_id::text AS id`,
      [paymentId],
    );
    const database = connect({ connectionString: used.database.connectionString });
    const authorizer = createNetworkAuthorizer({ address: used.network.address });
    const asked: string[] = [];
    const refunding: Pick<Authorizer, 'refund'> = {
      refund: (request, call) => {
        asked.push(call.requestId);
        return authorizer.refund(request, call);
      },
    };
    const notForMe = () => Promise.reject(new Error('not for me'));
    const deliver = createRefundDelivery({ prisma: database.business, authorizer: refunding }, notForMe);
    const event = { aggregateType: 'refund', aggregateId: row?.id ?? '', type: REFUND_RESERVED, headers: {} };
    const context = { signal: new AbortController().signal, timeoutMs: 5_000 };
    // The network forgets keys in the end: what is noted as done must not be asked for again.
    for (const id of [newRequestId(), newRequestId()]) await deliver({ ...event, id, payload: Buffer.of() }, context);
    expect(asked).toEqual(used.keysAsked);
    authorizer.close();
    await database.close();
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
  });

  it('later, where the network is away: the payment is cancelled all the same, and the order can be paid anew', async () => {
    const request = paymentRequest();
    const paymentId = await pay(request);
    used.faults.push({ kind: 'outage' }, { kind: 'outage' }, { kind: 'outage' });
    const { code } = await cancel(paymentId);
    expect(code).toBe(status.OK);
    const again = await callUntilAnswered(used.client, {
      ...{ method: 'CreatePayment', requestId: newRequestId(), request },
    });
    expect(again.answer.code).toBe(status.OK);
    await settled();
    expect(await givenBack(paymentId)).toEqual({ ours: 1_250, reserved: 0, network: 1_250 });
    expect(await givenBack(again.answer.response?.payment.payment_id ?? '')).toMatchObject({ ours: 0, network: 0 });
  });
});
