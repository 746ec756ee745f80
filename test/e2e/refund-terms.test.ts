import { status } from '@grpc/grpc-js';
import { connect } from '../../src/database/connect';
import { newRequestId } from '../../src/idempotency/index';
import { createRequestIds } from '../../src/idempotency/request-id';
import { requeueAll, requeueEvent } from '../../src/outbox/requeue';
import { refundTermsOf } from '../../src/payments/refund-event';
import { paymentRequest } from '../support/payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from '../support/payments-with-network';
import { until } from '../support/until';

// Two services on one busy database.
jest.setTimeout(60_000);

const DAY_MS = 86_400_000;

let used: PaymentsWithNetwork;

beforeAll(async () => (used = await startPaymentsWithNetwork({ deliver: () => Promise.resolve() })));
beforeEach(async () => {
  used.hold(() => Promise.resolve());
  await used.database.rows('TRUNCATE outbox_events, outbox_aggregates, refunds, card_network_refunds');
});
afterAll(() => used.stop());

/** Cancels a payment while the network can't be asked; the relay of the service has tried at least once. */
async function cancelUnasked(): Promise<void> {
  const paid = await used.client.call({
    ...{ method: 'CreatePayment', requestId: newRequestId() },
    request: paymentRequest(),
  });
  used.hold((point) => (point === 'before' ? Promise.reject(new Error('the network is away')) : Promise.resolve()));
  const request = { payment_id: paid.response?.payment.payment_id };
  expect((await used.client.call({ method: 'CancelPayment', request })).code).toBe(status.OK);
  await until('the relay has tried', async () => (await used.database.count(`${REFUNDS} AND attempts > 0`)) === 1);
}
const REFUNDS = `outbox_events WHERE aggregate_type = 'refund'`;
/** Makes the event of the refund, and the refund itself, of that age, and due at once. */
async function makeOlder(ms: number, change = ''): Promise<string> {
  const id = createRequestIds({ nowMs: () => Date.now() - ms })();
  const setting = change === '' ? '' : `, ${change}`;
  await used.database.rows(`UPDATE outbox_events SET event_id = $1${setting} WHERE aggregate_type = 'refund'`, [id]);
  await used.database.rows(`UPDATE refunds SET created_at = now() - $1 * interval '1 millisecond'`, [ms]);
  await used.database.rows(`UPDATE outbox_aggregates SET due_at = now(), claim_token = NULL`);
  return id;
}
const stateIs = (state: string) => async () => (await used.database.count(`${REFUNDS} AND state = '${state}'`)) === 1;
const givenBack = () => used.database.rows('SELECT amount_minor::int AS amount FROM card_network_refunds');

describe('the refund of a cancelled payment', () => {
  it('is sent when the service was away for days, and however often that has failed', async () => {
    await cancelUnasked();
    await makeOlder(6 * DAY_MS, 'attempts = 5000');
    await until('it has failed again', async () => (await used.database.count(`${REFUNDS} AND attempts > 5000`)) === 1);
    expect(await used.database.count(`${REFUNDS} AND state = 'parked'`)).toBe(0);
    used.hold(() => Promise.resolve());
    await makeOlder(6 * DAY_MS);
    await until('it is delivered', stateIs('delivered'));
    expect(await givenBack()).toEqual([{ amount: 1250 }]);
  });

  it('is put aside when the network may have forgotten its key; a new id of its event changes nothing of that', async () => {
    await cancelUnasked();
    used.hold(() => Promise.resolve());
    const old = await makeOlder(7 * DAY_MS + 60_000);
    await until('it is parked', stateIs('parked'));
    const database = connect({ connectionString: used.database.connectionString });
    try {
      expect(await requeueAll(database.business, { termsOf: refundTermsOf })).toEqual({ requeued: 0, tooOld: 1 });
      await requeueEvent(database.business, old, { newId: true, termsOf: refundTermsOf });
      await until(
        'it was tried',
        async () => (await used.database.count(`${REFUNDS} AND last_error ~ 'look there'`)) === 1,
      );
      expect(await givenBack()).toEqual([]);

      await used.database.rows(`UPDATE refunds SET state = 'done', network_refund_id = 'by hand'`);
      await used.database.rows(`UPDATE outbox_aggregates SET due_at = now()`);
      await until('it is delivered', stateIs('delivered'));
      expect(await givenBack()).toEqual([]);
    } finally {
      await database.close();
    }
  });

  it('that is parked is sent again under its id for as long', async () => {
    await cancelUnasked();
    const database = connect({ connectionString: used.database.connectionString });
    try {
      const id = await makeOlder(6 * DAY_MS, `state = 'parked'`);
      await used.database.rows(`UPDATE outbox_aggregates SET state = 'parked'`);
      expect(await requeueEvent(database.business, id)).toEqual({ kind: 'too_old' });
      used.hold(() => Promise.resolve());
      expect(await requeueAll(database.business, { termsOf: refundTermsOf })).toEqual({ requeued: 1, tooOld: 0 });
      await until('it is delivered', stateIs('delivered'));
      expect(await givenBack()).toEqual([{ amount: 1250 }]);
    } finally {
      await database.close();
    }
  });
});
