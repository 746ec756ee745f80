import { randomUUID } from 'node:crypto';
import { reconcileCommand } from '../../src/cli/reconcile-command';
import { runCommand } from '../../src/cli/run-command';
import { newRequestId } from '../../src/idempotency/index';
import { type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;

beforeAll(async () => {
  used = await startReconciled();
  // As a restore may lose it: else nobody gets two live payments of an order into the table.
  await used.database.rows('DROP INDEX payments_one_live_per_order');
});
afterAll(() => used.stop());

const reconcile = async (...words: readonly string[]) => {
  const lines: string[] = [];
  // Every command names its database.
  const print = (line: string): void => void (line.startsWith('database: ') || lines.push(line));
  const environment = { DATABASE_URL: used.database.connectionString, CARD_NETWORK_ADDRESS: used.network.address };
  const args = ['reconcile', ...words];
  const code = await runCommand({ commands: [reconcileCommand], args, environment, print, printError: print });
  return { code, lines };
};

/** Writes a charge into the books of the network, an hour ago, in the name of a payment. Returns its id. */
const insertCharge = async (reference: string): Promise<string> => {
  const [row] = await used.database.rows<{ id: string }>(
    `INSERT INTO card_network_authorizations (authorization_id, scope, request_id, reference, amount_minor, currency,
                                              payment_method, state, created_at)
     SELECT gen_random_uuid(), scope, $2, $1, 700, 'EUR', 'tok_visa', 'authorized', now() - interval '1 hour'
     FROM card_network_authorizations LIMIT 1
     RETURNING authorization_id::text AS id`,
    [reference, newRequestId()],
  );
  return row?.id ?? '';
};

/** Writes a live payment into our books, that many minutes ago. */
const insertPayment = (paymentId: string, orderId: string, authorizationId: string, minutes: number) =>
  used.database.rows(
    `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state, authorization_id,
                           etag, created_at)
     VALUES ($1, 'local', $2, 700, 'EUR', 'tok_visa', 'authorized', $3, gen_random_uuid(),
             now() - $4::int * interval '1 minute')`,
    [paymentId, orderId, authorizationId, minutes],
  );

it('a charge, a payment, and two payments of one order, written behind the service: each is found, and repaired once', async () => {
  const good = await used.pay();
  await used.age();
  const orphan = await insertCharge(randomUUID());
  const uncharged = randomUUID();
  await insertPayment(uncharged, 'order-uncharged', randomUUID(), 60);
  const [first, second] = [randomUUID(), randomUUID()];
  await insertPayment(first, 'order-twice', await insertCharge(first), 90);
  await insertPayment(second, 'order-twice', await insertCharge(second), 60);

  const looked = await reconcile();
  expect(looked.code).toBe(1);
  expect(looked.lines.slice(1)).toEqual([
    expect.stringMatching(new RegExp(`^orphaned_charge +\\S+ +- +${orphan} +700 EUR +found`)),
    expect.stringMatching(new RegExp(`^uncharged_payment +${uncharged} +local/order-uncharged +\\S+ +700 EUR +found`)),
    expect.stringMatching(new RegExp(`^duplicate_payment +${second} +local/order-twice +\\S+ +700 EUR +found`)),
    expect.stringMatching(
      /: 1 orphaned_charge, 1 uncharged_payment, 1 duplicate_payment; 3 payments agree, 0 under way$/,
    ),
  ]);
  expect(await used.refunds()).toEqual({ count: 0, sum: 0 });

  const repaired = await reconcile('--repair');
  expect(repaired.code).toBe(0);
  expect(repaired.lines.filter((line) => line.includes('repaired: '))).toHaveLength(3);
  const after = async () => ({
    refunds: await used.refunds(),
    ours: await used.database.rows('SELECT payment_id::text, state, amount_minor::int FROM refunds'),
    states: await Promise.all([good.paymentId, uncharged, first, second].map((id) => used.stateOf(id))),
  });
  const books = await after();
  expect(books).toEqual({
    refunds: { count: 2, sum: 1400 },
    ours: [{ payment_id: second, state: 'done', amount_minor: 700 }],
    states: ['authorized', 'cancelled', 'authorized', 'cancelled'],
  });

  const again = await reconcile('--repair');
  expect(again).toEqual({ code: 0, lines: [expect.stringMatching(/: nothing found; 3 payments agree, 0 under way$/)] });
  expect(await after()).toEqual(books);
});
