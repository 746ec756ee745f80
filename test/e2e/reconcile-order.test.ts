import type { Command } from '../../src/cli/command';
import { reconcileCommand } from '../../src/cli/reconcile-command';
import { runCommand } from '../../src/cli/run-command';
import { newRequestId } from '../../src/idempotency/index';
import { type MadePayment, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

const ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

let used: Reconciled;

beforeAll(async () => {
  used = await startReconciled();
  // As after a restore that lost it.
  await used.database.rows('DROP INDEX payments_one_live_per_order');
});
beforeEach(() => used.clear());
afterAll(() => used.stop());

/** Runs the command with these words in this process. */
async function run(...args: readonly string[]) {
  const lines: string[] = [];
  // Every command names its database.
  const print = (line: string): void => void (line.startsWith('database: ') || lines.push(line));
  const commands: readonly Command[] = [reconcileCommand];
  const environment = {
    DATABASE_URL: used.database.connectionString,
    CARD_NETWORK_ADDRESS: used.network.address,
  };
  const code = await runCommand({
    ...{ commands, args: ['reconcile', ...args], environment, print, printError: print },
  });
  return { code, lines };
}
const look = (order: string, ...more: readonly string[]) => run('--order', order, '--scope', 'local', ...more);

const refund = ({ paymentId }: MadePayment, amount_minor: string) =>
  used.client.call({
    ...{ method: 'RefundPayment', requestId: newRequestId() },
    request: { payment_id: paymentId, amount_minor, reason: 'broken' },
  });

const paymentLine = ({ paymentId, requestId }: MadePayment, state = 'authorized'): unknown =>
  expect.stringMatching(new RegExp(`^payment ${paymentId} ${state}, 1250 EUR, made \\S+Z by request ${requestId}$`));
const chargeLine = (refundedMinor = 0): unknown =>
  expect.stringMatching(
    new RegExp(`^  charge ${ID} 1250 EUR, given back ${refundedMinor}, made \\S+Z under the key ${ID}$`),
  );

describe('grpc-idempotency reconcile --order', () => {
  it('shows what there is also where all is well, and nothing of other orders', async () => {
    const made = await used.pay();
    await used.orphan();
    await used.duplicateOf(await used.pay());
    await used.age();
    const { code, lines } = await look(made.order);
    expect(lines).toEqual([
      paymentLine(made),
      chargeLine(),
      `${made.order} of local: 1 payment, 1 charge at the card network, 0 refunds; nothing is double`,
    ]);
    expect(code).toBe(0);
  });

  it('shows refunds, and what is half given back as held once', async () => {
    const made = await used.pay();
    await refund(made, '250');
    const { code, lines } = await look(made.order);
    expect(lines).toEqual([
      paymentLine(made),
      chargeLine(250),
      expect.stringMatching(new RegExp(`^  refund ${ID} done, 250 EUR, made \\S+Z by request ${ID}$`)),
      `${made.order} of local: 1 payment, 1 charge at the card network, 1 refund; nothing is double`,
    ]);
    expect(code).toBe(0);
  });

  it('tells what was charged twice for one payment, and exits with 1', async () => {
    const made = await used.pay();
    await used.chargeAgain(made.paymentId);
    const young = await look(made.order);
    expect(young.code).toBe(1);
    expect(young.lines.at(-1)).toBe(
      `${made.order} of local: 1 payment, 2 charges at the card network, 0 refunds; money is held 2 times`,
    );
    expect(young.lines.at(-2)).toMatch(/^under way: charge \S+ \(young\)$/);

    await used.age();
    const old = await look(made.order);
    expect(old.code).toBe(1);
    expect(old.lines.slice(0, 3)).toEqual([paymentLine(made), chargeLine(), chargeLine()]);
    expect(old.lines.at(-2)).toContain(`orphaned_charge  ${made.paymentId}`);
    expect((await used.refunds()).count).toBe(0);

    await used.reconcile();
    const repaired = await look(made.order);
    expect(repaired.lines.at(-1)).toMatch(/2 charges at the card network, 0 refunds; nothing is double$/);
    expect(repaired.code).toBe(0);
  });

  it('tells two payments of two keys, and which of them is the duplicate', async () => {
    const made = await used.pay();
    const twice = await used.duplicateOf(made);
    await used.age();
    const { code, lines } = await look(made.order);
    expect(code).toBe(1);
    expect(lines[0]).toEqual(paymentLine(made));
    expect(lines[2]).toEqual(paymentLine(twice));
    expect(lines.at(-2)).toContain(`duplicate_payment  ${twice.paymentId}`);
    expect(lines.at(-1)).toMatch(/: 2 payments, 2 charges at the card network, 0 refunds; money is held 2 times$/);
  });

  it('does not count what was cancelled as double, also while it is about to be given back', async () => {
    const made = await used.pay();
    await used.client.call({ method: 'CancelPayment', request: { payment_id: made.paymentId } });
    const again = await used.duplicateOf(made);
    const { code, lines } = await look(made.order);
    expect(lines.slice(0, 1)).toEqual([paymentLine(made, 'cancelled')]);
    expect(lines[2]).toMatch(new RegExp(`^  refund ${ID} reserved, 1250 EUR, made \\S+Z by request ${ID}$`));
    expect(lines[3]).toEqual(paymentLine(again));
    expect(lines.at(-1)).toMatch(/: 2 payments, 2 charges at the card network, 1 refund; nothing is double$/);
    expect(code).toBe(0);

    await used.age();
    const old = await look(made.order);
    expect(old.lines.at(-2)).toContain(`refund_unfinished  ${made.paymentId}`);
    expect(old.lines.at(-1)).toMatch(/nothing is double, but see above$/);
    expect(old.code).toBe(1);
  });

  it('tells of a cancelled payment that the network still holds money for, beside the one that took its place', async () => {
    const made = await used.pay();
    await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [made.paymentId]);
    await used.duplicateOf(made);
    const { code, lines } = await look(made.order);
    expect(lines.at(-2)).toContain(`cancelled_charge  ${made.paymentId}`);
    expect(lines.at(-1)).toMatch(/0 refunds; money is held 2 times$/);
    expect(code).toBe(1);
  });

  it('tells of a payment that the network has no charge for', async () => {
    const made = await used.uncharged();
    await used.age();
    const { code, lines } = await look(made.order);
    expect(code).toBe(1);
    expect(lines[1]).toBe('  no charge at the card network');
    expect(lines.at(-2)).toContain(`uncharged_payment  ${made.paymentId}`);
    expect(lines.at(-1)).toMatch(
      /1 payment, 0 charges at the card network, 0 refunds; nothing is double, but see above$/,
    );
  });

  it('tells of a payment that is half finished, under which key it goes on, and that nothing is wrong with it yet', async () => {
    const { order, requestId } = await used.payHalfWay();
    const young = await look(order);
    expect(young.lines).toEqual([
      expect.stringMatching(new RegExp(`^draft ${ID} not paid yet, 1250 EUR, made \\S+Z by request ${requestId}$`)),
      chargeLine(),
      expect.stringMatching(/^under way: charge \S+ \(young\)$/),
      expect.stringMatching(/^under way: draft \S+ \(young\)$/),
      `${order} of local: 0 payments, 1 draft, 1 charge at the card network, 0 refunds; nothing is double`,
    ]);
    expect(young.code).toBe(0);
    await used.age();
    const old = await look(order);
    expect(old.lines.slice(2, -1)).toEqual([expect.stringMatching(/^under way: charge \S+ \(claimed\)$/)]);
    expect(old.code).toBe(0);
  });

  it('tells of a draft that nobody goes on with', async () => {
    const { order } = await used.payHalfWay();
    await used.database.rows('DELETE FROM card_network_authorizations');
    await used.database.rows('DELETE FROM idempotency_record');
    await used.age();
    const { code, lines } = await look(order);
    expect(lines.at(-2)).toMatch(/^abandoned_draft/);
    expect(code).toBe(1);
  });

  it('says that it knows nothing of an order, also of one of another account, with 1', async () => {
    const made = await used.pay();
    const { code, lines } = await run('--order', made.order, '--scope', 'shop-2');
    expect(lines).toEqual([
      `${made.order} of shop-2: no payment and no draft of it is known; a charge that none of ours names is found by reconcile --since`,
    ]);
    expect(code).toBe(1);
  });

  it('--json is one line that holds it all, amounts as texts', async () => {
    const made = await used.pay();
    await refund(made, '250');
    const { code, lines } = await look(made.order, '--json');
    expect([code, lines.length]).toEqual([0, 1]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      ...{ orderId: made.order, scope: 'local', heldCharges: 1, findings: [], underWay: [] },
      entries: [
        {
          ...{ paymentId: made.paymentId, requestId: made.requestId, state: 'authorized', amountMinor: '1250' },
          charges: [{ reference: made.paymentId, refundedMinor: '250' }],
          refunds: [{ state: 'done', amountMinor: '250' }],
        },
      ],
    });
  });

  it('prints nothing that a terminal would obey', async () => {
    await used.pay();
    await used.database.rows(`UPDATE payments SET order_id = E'a\\n\\x1b[31mb', scope = E'x\\ty'`);
    const { lines } = await run('--order', 'a\n\x1b[31mb', '--scope', 'x\ty');
    expect(lines.at(-1)).toMatch(/^a \[31mb of x y: 1 payment, /);
  });

  it.each([
    [['--order', 'o'], '--order needs --scope'],
    [['--scope', 's'], '--scope goes with --order'],
    [['--order', '', '--scope', 's'], '--order and --scope: expected'],
    [['--order', 'o', '--scope', 's', '--repair'], '--order only looks'],
    [['--order', 'o', '--scope', 's', '--since', '2020-01-01'], '--order looks at all times'],
  ])('the words %j are a mistake, found before anything is connected', async (words, message) => {
    const { code, lines } = await run(...words);
    expect(code).toBe(2);
    expect(lines.at(-1)).toContain(message);
  });
});
