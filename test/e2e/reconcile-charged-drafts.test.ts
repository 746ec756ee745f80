import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import { outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;

beforeAll(async () => (used = await startReconciled()));
beforeEach(async () => {
  await used.clear();
  await used.pay();
});
afterAll(() => used.stop());

/** Leaves a charged draft, and lets so much time go by since its last lease. */
async function leaveFor(interval: string) {
  const half = await used.payHalfWay();
  await used.age();
  await used.database.rows(
    `UPDATE idempotency_record SET lease_until = lease_until - $1::interval, created_at = created_at - $1::interval`,
    [interval],
  );
  return half;
}

describe('a draft that was charged, and nobody goes on with', () => {
  it('is under way while somebody may come back for it', async () => {
    await leaveFor('1 hour');
    const report = await used.reconcile();
    expect(report.findings).toEqual([]);
    expect(report.underWay).toMatchObject([{ subject: 'charge', why: 'claimed' }]);
  });

  it('is found then, and recorded once; a late retry is told of that payment', async () => {
    const { order, requestId } = await leaveFor('3 days');
    expect(outcomesOf(await used.reconcile({ repair: false }))).toEqual(['orphaned_charge found']);
    expect(outcomesOf(await used.reconcile())).toEqual(['orphaned_charge repaired']);
    expect(outcomesOf(await used.reconcile())).toEqual([]);
    const payments = await used.database.rows<{ id: string }>(
      'SELECT payment_id::text AS id FROM payments WHERE order_id = $1',
      [order],
    );
    expect(payments).toHaveLength(1);

    const late = await used.client.call({
      ...{ method: 'CreatePayment', requestId },
      request: paymentRequest({ order_id: order }),
    });
    expect([late.code, late.response?.payment.payment_id]).toEqual([status.OK, payments[0]?.id]);
    expect((await used.refunds()).count).toBe(0);
  });

  it('is left alone where its request is taken up again between the look and the repair', async () => {
    const { requestId } = await leaveFor('3 days');
    let looks = 0;
    const report = await used.reconcile({
      recordOf: async (request) => {
        looks += 1;
        if (looks > 1) {
          await used.database.rows(
            `UPDATE idempotency_record SET lease_until = now() + interval '30 s' WHERE request_id = $1`,
            [requestId],
          );
        }
        return used.recordOf(request);
      },
    });
    expect(outcomesOf(report)).toEqual(['orphaned_charge left']);
  });
});
