import { join } from 'node:path';
import type { Command } from '../../src/cli/command';
import { reconcileCommand } from '../../src/cli/reconcile-command';
import { runCommand } from '../../src/cli/run-command';
import { type Reconciled, startReconciled } from '../support/reconciliation';
import { ROOT, runProgram } from '../support/run-program';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;

beforeAll(async () => (used = await startReconciled()));
afterAll(() => used.stop());

const environment = () => ({
  DATABASE_URL: used.database.connectionString,
  CARD_NETWORK_ADDRESS: used.network.address,
});

/** Runs the command with these words in this process. */
async function run(...args: readonly string[]) {
  const lines: string[] = [];
  // Every command names its database.
  const print = (line: string): void => void (line.startsWith('database: ') || lines.push(line));
  const commands: readonly Command[] = [reconcileCommand];
  const options = { commands, args: ['reconcile', ...args], environment: environment(), print, printError: print };
  return { code: await runCommand(options), lines };
}

/** Runs the program, with the simulator that it starts itself. */
async function runAlone(...args: readonly string[]) {
  const program = runProgram(['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), 'reconcile', ...args], {
    DATABASE_URL: used.database.connectionString,
  });
  return {
    code: await program.exited,
    output: program
      .output()
      .trimEnd()
      .replace(/^database: .*\n?/m, '')
      .trimEnd(),
  };
}

describe('grpc-idempotency reconcile', () => {
  beforeEach(() => used.clear());

  it('says that nothing was found, with 0', async () => {
    await used.pay();
    const { code, lines } = await run('--since', '2020-01-01');
    expect(code).toBe(0);
    expect(lines).toEqual(['since 2020-01-01T00:00:00.000Z: nothing found; 1 payments agree, 0 under way']);
  });

  it('shows what it found as a table, changes nothing, and exits with 1; --repair repairs it and exits with 0', async () => {
    await used.pay();
    const lost = await used.orphan();
    const [charge] = await used.books.inNameOf(lost.paymentId);
    await used.age();

    for (const words of [[], ['--dry-run']]) {
      const { code, lines } = await run(...words);
      expect(code).toBe(1);
      expect(lines).toEqual([
        expect.stringMatching(/^finding +payment +order +authorization +amount +outcome$/),
        `orphaned_charge  ${lost.paymentId}  -      ${charge?.authorizationId}  1250 EUR  found; --repair goes about it`,
        expect.stringMatching(/^since \S+: 1 orphaned_charge; 1 payments agree, 0 under way$/),
      ]);
      expect((await used.refunds()).count).toBe(0);
    }
    const repaired = await run('--repair');
    expect(repaired.code).toBe(0);
    expect(repaired.lines[1]).toMatch(/repaired: gave the money back: refund [0-9a-f-]{36} of the network$/);
    expect((await run()).code).toBe(0);
    expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
  });

  it('--json is one line that holds it all, amounts as texts', async () => {
    await used.pay();
    const lost = await used.uncharged();
    const young = await run('--json');
    expect(young.code).toBe(0);
    expect(JSON.parse(young.lines.join('\n'))).toMatchObject({
      ...{ repair: false, agreed: 1, findings: [] },
      underWay: [{ subject: 'payment', id: lost.paymentId, why: 'young' }],
    });
    await used.age();
    const { code, lines } = await run('--json', '--repair');
    expect([code, lines.length]).toEqual([0, 1]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      repair: true,
      findings: [
        {
          kind: 'uncharged_payment',
          payment: { paymentId: lost.paymentId, orderId: lost.order, scope: 'local', amountMinor: '1250' },
          outcome: { kind: 'repaired', how: 'cancelled the payment' },
        },
      ],
    });
  });

  it('prints one line a finding, and nothing that a terminal would obey', async () => {
    const made = await used.pay();
    await used.database.rows(`UPDATE payments SET order_id = E'a\\n\\x1b[31mb', amount_minor = 7`);
    await used.age();
    const { lines } = await run();
    expect(lines).toHaveLength(3);
    expect(lines[1]).toContain(`amount_mismatch  ${made.paymentId}  local/a [31mb`);
    expect(lines[1]).toContain('7 EUR, at the network 1250 EUR');
  });

  it('starts the simulator of the service where no network is configured, and ends it', async () => {
    await used.pay();
    expect(await runAlone()).toEqual({
      code: 0,
      output: expect.stringMatching(/^since \S+: nothing found; 1 payments agree, 0 under way$/) as string,
    });
  });

  it.each([
    [['--repair', '--dry-run'], '--dry-run only looks'],
    [['--since', 'yesterday'], '--since: expected a date'],
    [['--since', '2020-01-01T10:00'], '--since: expected a date'],
    [['--since', '2020-13-01'], '--since: expected a date'],
    [['--since', '2999-01-01'], '--since: expected a date or time that is over'],
    [['now'], 'now'],
  ])('the words %j are a mistake, found before anything is connected', async (words, message) => {
    const { code, lines } = await run(...words);
    expect(code).toBe(2);
    expect(lines.at(-1)).toContain(message);
  });

  it('a network that is away is named, and nothing is repaired', async () => {
    const lines: string[] = [];
    const print = (line: string): void => void lines.push(line);
    const code = await runCommand({
      ...{ commands: [reconcileCommand], args: ['reconcile', '--repair'], print, printError: print },
      environment: { ...environment(), CARD_NETWORK_ADDRESS: '127.0.0.1:1' },
    });
    expect(code).toBe(1);
    expect(lines.join('\n')).toMatch(
      /^database: .*\nthe books of the card network at 127\.0\.0\.1:1 could not be read: /,
    );
  });
});
