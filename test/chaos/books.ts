import { reconcileCommand } from '../../src/cli/reconcile-command';
import { endLeases } from '../support/outbox';
import type { TestDatabase } from '../support/postgres';
import { until } from '../support/until';
import type { Intent } from './intents';
import type { World } from './world';

/** Things that are still under way, by name and number. */
const UNSETTLED = `
SELECT * FROM (
  SELECT 'records that are claimed' AS what, count(*)::int AS count FROM idempotency_record WHERE state = 'claimed'
  UNION ALL SELECT 'drafts', count(*)::int FROM payment_drafts
  UNION ALL SELECT 'refunds that are reserved', count(*)::int FROM refunds WHERE state = 'reserved'
  UNION ALL SELECT 'events that are not delivered', count(*)::int FROM outbox_events WHERE state <> 'delivered'
) AS unsettled WHERE count > 0`;

/** What no run may leave behind, one row each. */
const WRONG = `
SELECT 'an order with several payments' AS what, order_id AS which FROM payments GROUP BY order_id HAVING count(*) > 1
UNION ALL
SELECT 'a payment that was charged ' || count(card_network_authorizations.authorization_id) || ' times', payments.payment_id::text
FROM payments LEFT JOIN card_network_authorizations ON reference = payments.payment_id::text
GROUP BY payments.payment_id HAVING count(card_network_authorizations.authorization_id) <> 1
UNION ALL
SELECT 'a charge without a payment', reference FROM card_network_authorizations
WHERE NOT EXISTS (SELECT FROM payments WHERE payment_id::text = reference)
UNION ALL
SELECT 'a payment with ' || count(mail_id) || ' mails', payments.payment_id::text
FROM payments LEFT JOIN receipt_mails ON receipt_mails.payment_id = payments.payment_id::text
GROUP BY payments.payment_id HAVING count(mail_id) <> 1
UNION ALL
SELECT 'a key with several refunds', request_id FROM refunds GROUP BY request_id HAVING count(*) > 1
UNION ALL
SELECT 'a refund that the network carried out ' || count(card_network_refunds.refund_id) || ' times', refunds.refund_id::text
FROM refunds LEFT JOIN card_network_refunds ON card_network_refunds.refund_id::text = refunds.network_refund_id
GROUP BY refunds.refund_id HAVING count(card_network_refunds.refund_id) <> 1
UNION ALL
SELECT 'a refund of the network that we do not know', refund_id::text FROM card_network_refunds
WHERE NOT EXISTS (SELECT FROM refunds WHERE network_refund_id = card_network_refunds.refund_id::text)
UNION ALL
SELECT 'a parked request', request_id FROM idempotency_record WHERE state = 'parked'`;

/** How long what callers left may take to be finished without them, milliseconds. */
const SETTLED_WITHIN_MS = 90_000;

/**
 * Waits until nothing is under way any more, then compares what callers were told with the tables that the handlers, the
 * card network and the mail service write. Everything that is wrong, one line each; none where the books agree.
 */
export async function checkBooks(
  { database, cardNetworkAddress }: Pick<World, 'database' | 'cardNetworkAddress'>,
  intents: readonly Intent[],
): Promise<readonly string[]> {
  // A relay that was killed has its events for a minute, and nobody is to wait for that.
  await endLeases({ database });
  const isSettled = async () => (await unsettled(database)).length === 0;
  await until('nothing is under way', isSettled, SETTLED_WITHIN_MS).catch(() => undefined);
  return [
    ...(await unsettled(database)),
    ...(await wrongInTables(database)),
    ...(await wrongAnswers(database, intents)),
    ...(await reconcile(database.connectionString, cardNetworkAddress)),
  ];
}

type Tables = Pick<TestDatabase, 'rows'>;

/** What is still under way, one line for each kind. */
export async function unsettled({ rows }: Tables): Promise<readonly string[]> {
  const found = await rows<{ what: string; count: number }>(UNSETTLED);
  return found.map(({ what, count }) => `${what}: ${count}`);
}

/** What is wrong in the tables, whatever anybody was told. */
export async function wrongInTables({ rows }: Tables): Promise<readonly string[]> {
  const found = await rows<{ what: string; which: string }>(WRONG);
  return found.map(({ what, which }) => `${what}: ${which}`);
}

/** What was told otherwise than the tables have it. */
export async function wrongAnswers({ rows }: Tables, intents: readonly Intent[]): Promise<readonly string[]> {
  const idsOf = async (sql: string) =>
    new Map((await rows<{ id: string; of: string }>(sql)).map(({ id, of }) => [id, of] as const));
  const payments = await idsOf('SELECT payment_id AS id, order_id AS of FROM payments');
  const refunds = await idsOf('SELECT refund_id AS id, request_id AS of FROM refunds');
  const asked = { payments: count(intents, 'payment'), refunds: count(intents, 'refund') };
  return [
    ...intents.flatMap((intent) => faultsOf(intent, payments, refunds)),
    ...(payments.size === asked.payments ? [] : [`${payments.size} payments for ${asked.payments} orders`]),
    ...(refunds.size === asked.refunds ? [] : [`${refunds.size} refunds for ${asked.refunds} that were asked for`]),
  ];
}

function faultsOf(
  { kind, requestId, of, answers, made }: Intent,
  payments: ReadonlyMap<string, string>,
  refunds: ReadonlyMap<string, string>,
): readonly string[] {
  const name = `${kind} ${requestId}`;
  if (answers.length === 0) return [`${name} was never answered`];
  if (new Set(answers).size > 1) return [`${name} was answered in several ways: ${[...new Set(answers)].join(' ')}`];
  // Orders are new and cards are good, so nothing may be refused.
  if (made === undefined) return [`${name}: ${answers[0] ?? ''}`];
  const [found, expected] = kind === 'payment' ? [payments.get(made), of] : [refunds.get(made), requestId];
  return found === expected ? [] : [`${name} was acknowledged as ${made}, which is not there`];
}

function count(intents: readonly Intent[], kind: Intent['kind']): number {
  return intents.filter((intent) => intent.kind === kind).length;
}

/** What the product's own comparison says. */
async function reconcile(connectionString: string, cardNetworkAddress: string): Promise<readonly string[]> {
  const printed: string[] = [];
  const code = await reconcileCommand.run({
    ...{ args: [], print: (line: string) => void printed.push(line), printError: () => undefined },
    environment: { DATABASE_URL: connectionString, CARD_NETWORK_ADDRESS: cardNetworkAddress },
  });
  return code === 0 ? [] : [`reconcile: ${printed.join('; ')}`];
}
