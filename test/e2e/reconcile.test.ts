import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { needsSomebody } from '../../src/reconciliation/findings';
import { paymentRequest } from '../support/payment-requests';
import { type MadePayment, outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;
/** A payment that is in order. */
let good: MadePayment;

beforeAll(async () => {
  used = await startReconciled();
  // As after a restore that lost it.
  await used.database.rows('DROP INDEX payments_one_live_per_order');
});
beforeEach(async () => {
  await used.clear();
  good = await used.pay();
});
afterAll(() => used.stop());

/** Every row that a repair might change. */
async function everything(): Promise<unknown> {
  const tables = ['payments', 'payment_drafts', 'refunds', 'card_network_authorizations', 'card_network_refunds'];
  const all = [...tables, 'idempotency_record', 'outbox_events', 'idempotency_method'];
  return Promise.all(all.map((table) => used.database.rows(`SELECT to_jsonb(t) FROM ${table} AS t ORDER BY 1`)));
}

it('where the books agree nothing is found', async () => {
  await used.age();
  const report = await used.reconcile();
  expect(report).toMatchObject({ agreed: 1, findings: [], underWay: [] });
  expect(needsSomebody(report)).toBe(false);
});

it('finds each of the three kinds, and a dry run changes nothing', async () => {
  const lost = await used.orphan();
  const unpaid = await used.uncharged();
  const twice = await used.duplicateOf(good);
  await used.age();
  const before = await everything();
  const report = await used.reconcile({ repair: false });
  expect(await everything()).toEqual(before);
  expect(report.agreed).toBe(2);
  expect(needsSomebody(report)).toBe(true);
  expect(report.findings).toMatchObject([
    { outcome: { kind: 'found' }, finding: { kind: 'orphaned_charge', charge: { reference: lost.paymentId } } },
    { outcome: { kind: 'found' }, finding: { kind: 'uncharged_payment', payment: { paymentId: unpaid.paymentId } } },
    {
      outcome: { kind: 'found' },
      finding: {
        kind: 'duplicate_payment',
        payment: { paymentId: twice.paymentId, scope: 'local', orderId: good.order, amountMinor: 1250n },
        keptPaymentId: good.paymentId,
      },
    },
  ]);
  expect(used.events).toEqual([
    expect.objectContaining({
      type: 'compared',
      agreed: 2,
      found: {
        orphaned_charge: 1,
        uncharged_payment: 1,
        duplicate_payment: 1,
        amount_mismatch: 0,
        refund_mismatch: 0,
        abandoned_draft: 0,
        refund_unfinished: 0,
        cancelled_charge: 0,
      },
    }),
  ]);
});

it('repairs each once when it is run twice', async () => {
  await used.orphan();
  const unpaid = await used.uncharged();
  const twice = await used.duplicateOf(good);
  await used.age();
  const first = await used.reconcile();
  expect(outcomesOf(first)).toEqual([
    'orphaned_charge repaired',
    'uncharged_payment repaired',
    'duplicate_payment repaired',
  ]);
  expect(needsSomebody(first)).toBe(false);
  expect(await used.refunds()).toEqual({ count: 2, sum: 2500 });
  expect(await used.stateOf(unpaid.paymentId)).toBe('cancelled');
  expect(await used.stateOf(twice.paymentId)).toBe('cancelled');
  expect(await used.stateOf(good.paymentId)).toBe('authorized');
  const rows = await used.database.rows('SELECT payment_id::text, amount_minor::int, state FROM refunds');
  expect(rows).toEqual([{ payment_id: twice.paymentId, amount_minor: 1250, state: 'done' }]);

  const after = await everything();
  expect(outcomesOf(await used.reconcile())).toEqual([]);
  expect(await everything()).toEqual(after);
});

it('two that repair at the same time repair once', async () => {
  await used.orphan();
  const twice = await used.duplicateOf(good);
  await used.age();
  await Promise.all([used.reconcile(), used.reconcile(), used.reconcile()]);
  expect(await used.refunds()).toEqual({ count: 2, sum: 2500 });
  expect(await used.stateOf(twice.paymentId)).toBe('cancelled');
  expect(await used.database.count('refunds')).toBe(1);
  expect(outcomesOf(await used.reconcile())).toEqual([]);
});

it('what was refunded and not noted is noted by the next run, under the same key', async () => {
  await used.orphan();
  const twice = await used.duplicateOf(good);
  await used.age();
  const cutOff = {
    ...used.books,
    refund: async (...asked: Parameters<typeof used.books.refund>) => {
      await used.books.refund(...asked);
      throw new Error('the process dies here');
    },
  };
  expect(outcomesOf(await used.reconcile({ network: cutOff }))).toEqual([
    'orphaned_charge left',
    'duplicate_payment left',
  ]);
  expect(await used.stateOf(twice.paymentId)).toBe('authorized');
  expect(outcomesOf(await used.reconcile())).toEqual(['duplicate_payment repaired']);
  expect(await used.refunds()).toEqual({ count: 2, sum: 2500 });
  expect(await used.database.rows('SELECT state FROM refunds')).toEqual([{ state: 'done' }]);
});

it('a duplicate that was refunded in part is given the rest', async () => {
  const twice = await used.duplicateOf(good);
  const request = { payment_id: twice.paymentId, amount_minor: '250', reason: 'late' };
  const refunded = await used.client.call({ method: 'RefundPayment', request, requestId: newRequestId() });
  expect(refunded.code).toBe(status.OK);
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['duplicate_payment repaired']);
  expect(await used.refunds()).toEqual({ count: 2, sum: 1250 });
});

it('of duplicates the charged one stays, also where it is the younger one', async () => {
  const twice = await used.duplicateOf(good);
  await used.database.rows('DELETE FROM card_network_authorizations WHERE reference = $1', [good.paymentId]);
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['uncharged_payment repaired']);
  expect([await used.stateOf(good.paymentId), await used.stateOf(twice.paymentId)]).toEqual([
    'cancelled',
    'authorized',
  ]);
  expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
});

it('a copy of a payment, with the charge of the other, is cancelled and the charge stays', async () => {
  const copy = randomUUID();
  await used.database.rows(
    `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
                           authorization_id, etag)
     SELECT $1, scope, order_id, amount_minor, currency, payment_method, state, authorization_id, etag FROM payments`,
    [copy],
  );
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['uncharged_payment repaired']);
  expect([await used.stateOf(good.paymentId), await used.stateOf(copy)]).toEqual(['authorized', 'cancelled']);
  expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
});

it('a card that was charged twice for one payment is given one back', async () => {
  await used.chargeAgain(good.paymentId);
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired']);
  expect(outcomesOf(await used.reconcile())).toEqual([]);
  expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
  expect(await used.stateOf(good.paymentId)).toBe('authorized');
});

it('two charges without a payment are both given back, also where both were made under one key', async () => {
  const { paymentId } = await used.orphan();
  await used.chargeAgain(paymentId);
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired', 'orphaned_charge repaired']);
  expect(await used.refunds()).toEqual({ count: 2, sum: 2500 });
});

it('what changes between the look and the repair is left as it is', async () => {
  const unpaid = await used.uncharged();
  const twice = await used.duplicateOf(good);
  await used.age();
  let compared = false;
  const find: typeof used.books.find = async (authorizationId) => {
    if (compared) {
      const ids = [unpaid.paymentId, good.paymentId];
      await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = ANY ($1::uuid[])`, [ids]);
    }
    return used.books.find(authorizationId);
  };
  const report = await used.reconcile({ network: { ...used.books, find }, onEvent: () => (compared = true) });
  expect(outcomesOf(report)).toEqual(['uncharged_payment gone', 'duplicate_payment gone']);
  expect(await used.stateOf(twice.paymentId)).toBe('authorized');
  expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
});

it('no second payment is recorded for an order, though no index forbids it', async () => {
  const { order, requestId } = await used.payHalfWay();
  await used.database.rows(`UPDATE idempotency_record SET state = 'parked' WHERE request_id = $1`, [requestId]);
  await used.database.rows('UPDATE payments SET order_id = $1', [order]);
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired']);
  expect(await used.database.count('payments')).toBe(1);
  expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
});

it('a declined card is no charge', async () => {
  used.decisions.push('insufficient_funds');
  await used.client.call({ method: 'CreatePayment', request: paymentRequest(), requestId: newRequestId() });
  await used.age();
  expect(await used.reconcile()).toMatchObject({ agreed: 1, findings: [] });
});

it('charges and payments from before --since are left out, and still found as a counterpart', async () => {
  await used.age();
  const since = new Date(Date.now() - 600_000);
  const recent = await used.pay();
  await used.database.rows(`UPDATE payments SET created_at = now() - interval '9 min' WHERE payment_id = $1`, [
    recent.paymentId,
  ]);
  // Its charge is from before.
  await used.database.rows(
    `UPDATE card_network_authorizations SET created_at = now() - interval '11 min' WHERE reference = $1`,
    [recent.paymentId],
  );
  expect(await used.reconcile({ since })).toMatchObject({ agreed: 1, findings: [], underWay: [] });
});

it('of books without a payment in common nothing is repaired: one of them is the wrong one', async () => {
  await used.orphan();
  await used.database.rows('DELETE FROM payments');
  await used.age();
  const report = await used.reconcile();
  expect(outcomesOf(report)).toEqual(['orphaned_charge left', 'orphaned_charge left']);
  expect(needsSomebody(report)).toBe(true);
  expect(JSON.stringify(report.findings[0]?.outcome)).toContain('no payment in common');
  expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
});

it('what only a person can judge is named and left', async () => {
  const other = await used.pay();
  await used.database.rows(`UPDATE payments SET amount_minor = amount_minor - 1 WHERE payment_id = $1`, [
    good.paymentId,
  ]);
  const [charge] = await used.books.inNameOf(other.paymentId);
  if (charge === undefined) throw new Error('no charge');
  await used.books.refund(charge, 5n);
  await used.age();
  const before = await everything();
  const report = await used.reconcile();
  expect(outcomesOf(report)).toEqual(['amount_mismatch left', 'refund_mismatch left']);
  expect(report.findings[1]?.finding).toMatchObject({ doneMinor: 0n, askedMinor: 0n, charge: { refundedMinor: 5n } });
  expect(await everything()).toEqual(before);
});

it('an uncharged payment with refunds, or with a charge in its name that it does not know, is left', async () => {
  const refunded = await used.uncharged();
  await used.database.rows(
    `INSERT INTO refunds (refund_id, payment_id, scope, amount_minor, currency, reason, state, request_id)
     VALUES (gen_random_uuid(), $1, 'local', 1, 'EUR', '', 'reserved', 'key')`,
    [refunded.paymentId],
  );
  const other = await used.pay();
  await used.database.rows('UPDATE payments SET authorization_id = gen_random_uuid()::text WHERE payment_id = $1', [
    other.paymentId,
  ]);
  await used.age();
  const report = await used.reconcile();
  expect(outcomesOf(report)).toEqual([
    ...['orphaned_charge left', 'uncharged_payment left', 'uncharged_payment left', 'refund_unfinished left'],
  ]);
  expect(await used.stateOf(refunded.paymentId)).toBe('authorized');
  expect(await used.stateOf(other.paymentId)).toBe('authorized');
  expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
});
