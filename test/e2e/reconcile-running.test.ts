import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { RequestStatus } from '../../src/idempotency/index';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;

beforeAll(async () => (used = await startReconciled()));
beforeEach(async () => {
  await used.clear();
  // A payment that is in order, so that the books are seen to belong together.
  await used.pay();
});
afterAll(() => used.stop());

/** Drafts, payments, events and refunds at the network. */
const counts = async () => ({
  drafts: await used.database.count('payment_drafts'),
  payments: await used.database.count('payments'),
  events: await used.database.count('outbox_events'),
  refunds: (await used.refunds()).count,
});
const HALF_WAY = { drafts: 1, payments: 1, events: 1, refunds: 0 };
const RECORDED = { drafts: 0, payments: 2, events: 2, refunds: 0 };
const GIVEN_BACK = { drafts: 0, payments: 1, events: 1, refunds: 1 };

/** What became of the request that was left half way. */
const setRecord = (requestId: string, change: string) =>
  used.database.rows(`UPDATE idempotency_record SET ${change} WHERE request_id = $1`, [requestId]);
const FAILED = `state = 'completed', completed_at = now(), status_code = 13, status_message = 'internal error', results = NULL`;
const SUCCEEDED = `state = 'completed', completed_at = now(), status_code = 0, response = '', results = NULL`;

describe('reconciliation leaves alone what may still be running', () => {
  it('what is young', async () => {
    await used.database.rows('DELETE FROM payments');
    await used.pay();
    const lost = await used.uncharged();
    const report = await used.reconcile();
    expect(report).toMatchObject({
      agreed: 1,
      findings: [],
      underWay: [
        { subject: 'charge', why: 'young' },
        { subject: 'payment', id: lost.paymentId, why: 'young' },
      ],
    });
    expect(await counts()).toEqual({ drafts: 0, payments: 2, events: 3, refunds: 0 });
  });

  it('a charge whose request runs, however long ago it was made; it then ends as if nothing had looked', async () => {
    const charged = deferred();
    const goOn = deferred();
    used.hold(async (point) => {
      if (point !== 'after') return;
      charged.resolve();
      await goOn.promise;
    });
    const request = paymentRequest();
    const paying = used.client.call({ method: 'CreatePayment', request, requestId: randomUUID() });
    await charged.promise;
    await used.age();
    expect(await used.reconcile()).toMatchObject({ findings: [], underWay: [{ subject: 'charge', why: 'claimed' }] });
    expect(await counts()).toEqual(HALF_WAY);
    goOn.resolve();
    used.hold(() => Promise.resolve());
    expect((await paying).code).toBe(status.OK);
    expect(await counts()).toEqual(RECORDED);
  });

  it('a charge whose request is half finished and waits for its retry', async () => {
    await used.payHalfWay();
    await used.age();
    expect(await used.reconcile()).toMatchObject({ findings: [], underWay: [{ subject: 'charge', why: 'claimed' }] });
    expect(await counts()).toEqual(HALF_WAY);
  });

  it('an uncharged payment whose request is claimed', async () => {
    const lost = await used.uncharged();
    await setRecord(
      lost.requestId,
      `state = 'claimed', completed_at = NULL, status_code = NULL, status_message = NULL, response = NULL, trailers = NULL`,
    );
    await used.age();
    const report = await used.reconcile();
    expect(report).toMatchObject({ findings: [], underWay: [{ subject: 'payment', why: 'claimed' }] });
    expect(await used.database.rows(`SELECT 1 FROM payments WHERE state = 'cancelled'`)).toEqual([]);
  });

  it('a charge whose request is claimed again between the look and the repair', async () => {
    const { requestId } = await used.payHalfWay();
    await setRecord(requestId, `state = 'parked'`);
    await used.age();
    let freed = false;
    const report = await used.reconcile({
      onEvent: () => (freed = true),
      statusOf: async () => ({ kind: freed ? 'in_progress' : 'parked', since: new Date(), resource: undefined }),
    });
    expect(outcomesOf(report)).toEqual(['orphaned_charge left']);
    expect(await counts()).toEqual(HALF_WAY);
  });
});

describe('a charge whose request ends between the look and the change', () => {
  it.each<readonly [string, RequestStatus]>([
    ['that would record it', { kind: 'parked', since: new Date(), resource: undefined }],
    [
      'that would give it back',
      {
        kind: 'completed',
        ...{ since: new Date(), completedAt: new Date(), expiresAt: new Date() },
        ...{ resource: undefined, code: status.INTERNAL, message: '' },
      },
    ],
  ])('is left as it is, by the repair %s', async (_, said) => {
    await used.payHalfWay();
    await used.age();
    let compared = false;
    const report = await used.reconcile({
      onEvent: () => (compared = true),
      statusOf: async () => {
        // Its request records its payment just after it was looked for.
        if (compared) {
          await used.database.rows(
            `WITH draft AS (DELETE FROM payment_drafts RETURNING *)
             INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
                                   authorization_id, etag, request_id)
             SELECT payment_id, scope, order_id, amount_minor, currency, payment_method, 'authorized',
               (SELECT authorization_id::text FROM card_network_authorizations WHERE reference = payment_id::text),
               gen_random_uuid(), request_id FROM draft`,
          );
        }
        return said;
      },
    });
    expect(outcomesOf(report)).toEqual(['orphaned_charge left']);
    expect(await counts()).toEqual({ drafts: 0, payments: 2, events: 1, refunds: 0 });
    expect(await used.reconcile()).toMatchObject({ agreed: 2, findings: [] });
  });
});

describe('a charge whose draft nobody goes on with', () => {
  it.each([
    ['is parked', `state = 'parked'`],
    ['has expired', `state = 'expired'`],
    ['was told success', SUCCEEDED],
  ])('is recorded as the payment that its draft tells of, once, where its request %s', async (_, change) => {
    const { order, requestId } = await used.payHalfWay();
    await setRecord(requestId, change);
    await used.age();
    const [one, other] = await Promise.all([used.reconcile(), used.reconcile()]);
    expect([...outcomesOf(one), ...outcomesOf(other)]).toContain('orphaned_charge repaired');
    expect(outcomesOf(await used.reconcile())).toEqual([]);
    expect(await counts()).toEqual(RECORDED);
    const [row] = await used.database.rows(
      `SELECT payment.state, payment.request_id, payment.metadata, payment.scope,
         payment.authorization_id = charge.authorization_id::text AS charged
       FROM payments AS payment
       JOIN card_network_authorizations AS charge ON charge.reference = payment.payment_id::text
       WHERE payment.order_id = $1`,
      [order],
    );
    expect(row).toEqual({
      ...{ state: 'authorized', request_id: requestId, metadata: { basket: '7' }, scope: 'local', charged: true },
    });
  });

  it('is recorded where there is no record of its request, and a late retry is told of the payment', async () => {
    const { order, requestId } = await used.payHalfWay();
    await used.database.rows('DELETE FROM idempotency_record WHERE request_id = $1', [requestId]);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired']);
    const request = paymentRequest({ order_id: order });
    const late = await used.client.call({ method: 'CreatePayment', request, requestId });
    expect(late).toMatchObject({ code: status.ALREADY_EXISTS, error: { reason: 'ORDER_ALREADY_PAID' } });
    expect(await counts()).toEqual(RECORDED);
  });

  it('is the answer of its request, once that is freed', async () => {
    const { order, requestId } = await used.payHalfWay();
    await setRecord(requestId, `state = 'parked'`);
    await used.age();
    await used.reconcile();
    await setRecord(requestId, `state = 'claimed', attempt = 1, lease_until = now()`);
    const request = paymentRequest({ order_id: order });
    const answer = await used.client.call({ method: 'CreatePayment', request, requestId });
    expect(answer.code).toBe(status.OK);
    expect(answer.response?.payment).toMatchObject({ order_id: order });
    expect(await counts()).toEqual(RECORDED);
  });

  it('is given back where its caller was told that it failed', async () => {
    const { requestId } = await used.payHalfWay();
    await setRecord(requestId, FAILED);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired']);
    expect(outcomesOf(await used.reconcile())).toEqual([]);
    expect(await counts()).toEqual(GIVEN_BACK);
  });

  it('is given back where its order has another live payment', async () => {
    const { order, requestId } = await used.payHalfWay();
    await setRecord(requestId, `state = 'parked'`);
    await used.database.rows('UPDATE payments SET order_id = $1', [order]);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired']);
    expect(outcomesOf(await used.reconcile())).toEqual([]);
    expect(await counts()).toEqual(GIVEN_BACK);
  });

  it('is left where the draft says another amount', async () => {
    const { requestId } = await used.payHalfWay();
    await setRecord(requestId, `state = 'parked'`);
    await used.database.rows('UPDATE payment_drafts SET amount_minor = amount_minor + 1');
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge left']);
    expect(await counts()).toEqual(HALF_WAY);
  });
});
