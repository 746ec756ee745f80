import { newRequestId } from '../../src/idempotency/index';
import { reportLines } from '../../src/reconciliation/report';
import { type MadePayment, outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;
/** A payment that was refunded in part, and then cancelled by hand, which gives nothing back. */
let good: MadePayment;

beforeAll(async () => (used = await startReconciled()));
beforeEach(async () => {
  await used.clear();
  good = await used.pay();
});
afterAll(() => used.stop());

const refundRows = () =>
  used.database.rows('SELECT state, amount_minor::int AS amount FROM refunds ORDER BY created_at, amount');

describe('a cancelled payment of which the network still holds something', () => {
  beforeEach(async () => {
    await used.client.call({
      ...{ method: 'RefundPayment', requestId: newRequestId() },
      request: { payment_id: good.paymentId, amount_minor: '250', reason: 'broken' },
    });
    await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [good.paymentId]);
    await used.age();
  });

  it('is found, and what is left of it is given back once', async () => {
    const report = await used.reconcile({ repair: false });
    expect(report.findings).toMatchObject([
      { finding: { kind: 'cancelled_charge', payment: { orderId: good.order } } },
    ]);
    expect(reportLines(report)[1]).toMatch(/^cancelled_charge .* 1250 EUR, of which the network holds 1000 +found; /);
    expect(outcomesOf(await used.reconcile())).toEqual(['cancelled_charge repaired']);
    expect(await used.refunds()).toEqual({ count: 2, sum: 1250 });
    expect(await refundRows()).toEqual([
      { state: 'done', amount: 250 },
      { state: 'done', amount: 1000 },
    ]);
    expect(outcomesOf(await used.reconcile())).toEqual([]);
  });

  it('is given back once by three at the same time', async () => {
    await Promise.all([used.reconcile(), used.reconcile(), used.reconcile()]);
    expect(await used.refunds()).toEqual({ count: 2, sum: 1250 });
    expect(outcomesOf(await used.reconcile())).toEqual([]);
  });

  it('is none any more where somebody has given it back meanwhile', async () => {
    const meanwhile = {
      ...used.books,
      find: async (id: string) => {
        const charge = await used.books.find(id);
        return charge && { ...charge, refundedMinor: charge.amountMinor };
      },
    };
    expect(outcomesOf(await used.reconcile({ network: meanwhile }))).toEqual(['cancelled_charge gone']);
    expect((await used.refunds()).count).toBe(1);
  });

  it('is none where our books tell that it was asked back, or those of the network that it was given back', async () => {
    await used.database.rows('UPDATE refunds SET amount_minor = 1250');
    expect(outcomesOf(await used.reconcile())).toEqual(['refund_mismatch left']);
    await used.database.rows('UPDATE refunds SET amount_minor = 250');
    await used.database.rows('UPDATE card_network_refunds SET amount_minor = 1250');
    expect(outcomesOf(await used.reconcile())).toEqual(['refund_mismatch left']);
  });

  it('is left alone where it is live again, or names another charge', async () => {
    const changing = (set: string) => ({
      ...used.books,
      find: async (id: string) => {
        await used.database.rows(`UPDATE payments SET ${set} WHERE payment_id = $1`, [good.paymentId]);
        return used.books.find(id);
      },
    });
    const live = await used.reconcile({ network: changing(`state = 'authorized'`) });
    expect(outcomesOf(live)).toEqual(['cancelled_charge gone']);
    await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [good.paymentId]);
    const other = await used.reconcile({ network: changing('authorization_id = gen_random_uuid()::text') });
    expect(outcomesOf(other)).toEqual(['cancelled_charge gone']);
    expect((await used.refunds()).count).toBe(1);
  });

  it('gives back no more than the network still holds, whatever our books say', async () => {
    await used.database.rows('DELETE FROM refunds');
    expect(outcomesOf(await used.reconcile())).toContain('cancelled_charge repaired');
    expect(await used.refunds()).toEqual({ count: 2, sum: 1250 });
  });
});
