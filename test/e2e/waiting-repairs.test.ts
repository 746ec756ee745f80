import { connect, type Database } from '../../src/database/connect';
import { type MadePayment, outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';
import { until } from '../support/until';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;
let good: MadePayment;
/** Connections of a process whose database gives transactions a stricter level unless they say otherwise. */
let strict: Database;

beforeAll(async () => {
  used = await startReconciled();
  // As after a restore that lost it.
  await used.database.rows('DROP INDEX payments_one_live_per_order');
  const url = new URL(used.database.connectionString);
  url.searchParams.set('options', '-c default_transaction_isolation=repeatable\\ read');
  strict = connect({ connectionString: url.href });
});
beforeEach(async () => {
  await used.clear();
  good = await used.pay();
});
afterAll(async () => {
  await strict.close();
  await used.stop();
});

/** What one does to our books under a lock while a repair waits for that, whose outcome it then is. */
interface Meanwhile {
  readonly lock: string;
  readonly change: string;
  readonly values: readonly string[];
}

async function repairBehind({ lock, change, values }: Meanwhile): Promise<readonly string[]> {
  const holder = await used.database.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(lock, [...values]);
    const repairing = used.reconcile({ prisma: strict.business });
    const waiting = `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until('the repair waits', async () => (await used.database.count(waiting)) > 0);
    await holder.query(change, [...values]);
    await holder.query('COMMIT');
    return outcomesOf(await repairing);
  } finally {
    holder.release();
  }
}

/** Reserves a refund under the lock of its payment, as a RefundPayment of another process does. */
const refunding = ({ paymentId }: MadePayment, amountMinor: number): Meanwhile => ({
  lock: 'SELECT 1 FROM payments WHERE payment_id = $1 FOR UPDATE',
  change: `INSERT INTO refunds (refund_id, payment_id, scope, amount_minor, currency, reason, state, request_id)
           VALUES (gen_random_uuid(), $1, 'local', ${amountMinor}, 'EUR', '', 'reserved', gen_random_uuid()::text)`,
  values: [paymentId],
});
const asked = async ({ paymentId }: MadePayment) => {
  const sql = 'SELECT sum(amount_minor)::int AS sum FROM refunds WHERE payment_id = $1';
  return (await used.database.rows<{ sum: number }>(sql, [paymentId]))[0]?.sum;
};

describe('a repair that waits for somebody sees what that one has done, whatever the level of the database', () => {
  it('a refund of the cancelled payment that it gives back the rest of', async () => {
    await used.pay();
    await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [good.paymentId]);
    await used.age();
    await repairBehind(refunding(good, 250));
    expect(await asked(good)).toBe(1250);
  });

  it('a refund of the duplicate that it gives back the rest of', async () => {
    const twice = await used.duplicateOf(good);
    await used.age();
    await repairBehind(refunding(twice, 250));
    expect(await asked(twice)).toBe(1250);
  });

  it('a refund of the payment without a charge, which is then not cancelled', async () => {
    const lost = await used.uncharged();
    await used.age();
    expect(await repairBehind(refunding(lost, 250))).toEqual(['uncharged_payment left']);
    expect(await used.stateOf(lost.paymentId)).toBe('authorized');
  });

  it('another payment of the order, which is then not recorded a second time', async () => {
    const { order, requestId } = await used.payHalfWay();
    await used.age();
    await used.database.rows(`UPDATE idempotency_record SET state = 'parked' WHERE request_id = $1`, [requestId]);
    await repairBehind({
      lock: 'SELECT 1 FROM payment_drafts WHERE order_id = $1 FOR UPDATE',
      change: `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
                 authorization_id, etag)
               VALUES (gen_random_uuid(), 'local', $1, 1250, 'EUR', 'tok_visa', 'authorized', 'auth', gen_random_uuid())`,
      values: [order],
    });
    expect(await used.database.count(`payments WHERE order_id = '${order}'`)).toBe(1);
    expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
  });
});
