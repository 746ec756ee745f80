import { newRequestId } from '../../src/idempotency/index';
import { needsSomebody } from '../../src/reconciliation/findings';
import { type MadePayment, outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;
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

async function refund({ paymentId }: MadePayment, amountMinor: number): Promise<void> {
  await used.client.call({
    ...{ method: 'RefundPayment', requestId: newRequestId() },
    request: { payment_id: paymentId, amount_minor: String(amountMinor), reason: 'broken' },
  });
}
/** Reserves a refund whose process dies before the network is asked, and of whose request nothing is recorded any more. */
async function reserve(payment: MadePayment, amountMinor: number): Promise<void> {
  used.hold((point) => (point === 'before' ? Promise.reject(new Error('the process dies here')) : Promise.resolve()));
  await refund(payment, amountMinor);
  used.hold(() => Promise.resolve());
  await used.database.rows('DELETE FROM idempotency_record WHERE recovery_point IS NOT NULL');
}
/** A refund that the network made and our books don't know, as one that was made there by hand. */
async function refundAtNetwork({ paymentId }: MadePayment, amountMinor: number): Promise<void> {
  await used.database.rows(
    `INSERT INTO card_network_refunds (refund_id, authorization_id, scope, request_id, amount_minor)
     SELECT gen_random_uuid(), authorization_id, scope, gen_random_uuid()::text, $2
     FROM card_network_authorizations WHERE reference = $1`,
    [paymentId, amountMinor],
  );
}
async function cancelByHand({ paymentId }: MadePayment): Promise<void> {
  await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [paymentId]);
}
/** What the network has given back of a payment. */
async function givenBack({ paymentId }: MadePayment): Promise<number | undefined> {
  const [row] = await used.database.rows<{ sum: number }>(
    `SELECT coalesce(sum(refund.amount_minor), 0)::int AS sum FROM card_network_refunds AS refund
     JOIN card_network_authorizations USING (authorization_id) WHERE reference = $1`,
    [paymentId],
  );
  return row?.sum;
}

describe('a repair of a duplicate', () => {
  it('gives back no more than the network still holds, where it gave back what our books do not know', async () => {
    const twice = await used.duplicateOf(good);
    await refundAtNetwork(twice, 500);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toContain('duplicate_payment repaired');
    expect([await givenBack(good), await givenBack(twice)]).toEqual([0, 1250]);
  });

  it('waits where a refund of ours is under way that the network may or may not tell of', async () => {
    const twice = await used.duplicateOf(good);
    await reserve(twice, 250);
    await refundAtNetwork(twice, 500);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toContain('duplicate_payment left');
    await used.reconcile();
    expect([await givenBack(good), await givenBack(twice)]).toEqual([0, 1250]);
  });

  it('keeps the payment that the order is paid with, not an older one that was given back', async () => {
    await refund(good, 1250);
    const second = await used.duplicateOf(good);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['duplicate_payment repaired']);
    expect([await givenBack(good), await givenBack(second)]).toEqual([1250, 0]);
    expect([await used.stateOf(good.paymentId), await used.stateOf(second.paymentId)]).toEqual([
      'cancelled',
      'authorized',
    ]);
  });
});

describe('a repair of a cancelled charge', () => {
  it('gives back no more than was paid, with one refund under way and another that our books do not know', async () => {
    await used.pay();
    await reserve(good, 250);
    await refundAtNetwork(good, 500);
    await cancelByHand(good);
    await used.age();
    const first = await used.reconcile();
    expect(outcomesOf(first)).toEqual(expect.arrayContaining(['cancelled_charge left', 'refund_unfinished repaired']));
    expect(needsSomebody(first)).toBe(true);
    for (let run = 0; run < 2; run += 1) await used.reconcile();
    expect(await givenBack(good)).toBe(1250);
  });

  it('leaves one of another amount to a person, instead of saying that somebody else has ended it', async () => {
    await cancelByHand(good);
    await used.database.rows('UPDATE card_network_authorizations SET amount_minor = 1500 WHERE reference = $1', [
      good.paymentId,
    ]);
    await used.age();
    for (let run = 0; run < 2; run += 1) {
      const report = await used.reconcile();
      expect(outcomesOf(report)).toContain('cancelled_charge left');
      expect(needsSomebody(report)).toBe(true);
    }
    expect(await givenBack(good)).toBe(0);
  });
});
