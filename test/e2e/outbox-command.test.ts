import { join } from 'node:path';
import type { Command } from '../../src/cli/command';
import { outboxCommand } from '../../src/cli/outbox-command';
import { runCommand } from '../../src/cli/run-command';
import { newRequestId } from '../../src/idempotency/index';
import { createRequestIds } from '../../src/idempotency/request-id';
import { REFUND_RESERVED } from '../../src/payments/refund-event';
import { openTestOutbox, storedEvents, type TestOutbox } from '../support/outbox';
import { ROOT, runProgram } from '../support/run-program';

jest.setTimeout(60_000);

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

/** Runs the command with these words in this process. */
async function run(...args: readonly string[]) {
  const lines: string[] = [];
  // Every command names its database.
  const print = (line: string): void => void (line.startsWith('database: ') || lines.push(line));
  const commands: readonly Command[] = [outboxCommand];
  const environment = { DATABASE_URL: outbox.database.connectionString };
  const code = await runCommand({ commands, args: ['outbox', ...args], environment, print, printError: print });
  return { code, lines };
}

/** An event that its consumer refused once too often. */
async function park(error = 'no\nsuch mail\u001b[31m'): Promise<string> {
  const id = await outbox.add();
  const relay = outbox.relay({ maxAttempts: 1, deliver: () => Promise.reject(new Error(error)) });
  expect((await relay.runOnce()).parked).toBe(1);
  return id;
}

describe('grpc-idempotency outbox', () => {
  it('shows parked events first, one a line, with what went wrong, and nothing that a terminal would obey', async () => {
    const id = await park();
    const waiting = await outbox.add({ aggregateId: 'p-2' });
    const { code, lines } = await run();
    expect(code).toBe(0);
    expect(lines).toEqual([
      expect.stringMatching(
        new RegExp(
          `^parked  ${id}  paid  payment/p-1  \\d+ s old, 1 failed deliveries, last error: no such mail \\[31m$`,
        ),
      ),
      expect.stringMatching(new RegExp(`^pending  ${waiting}  paid  payment/p-2  \\d+ s old, 0 failed deliveries$`)),
    ]);
    expect((await run('list', '--limit', '1')).lines).toEqual([
      expect.stringContaining(id),
      'there may be more; --limit shows them',
    ]);
  });

  it('says so where every event is delivered', async () => {
    expect(await run('list')).toEqual({ code: 0, lines: ['every event is delivered'] });
  });

  it('requeues a parked event under its id', async () => {
    const id = await park();
    expect(await run('requeue', id.toUpperCase())).toEqual({ code: 0, lines: [`requeued ${id}`] });
    expect(await storedEvents(outbox)).toMatchObject([{ event_id: id, state: 'pending', attempts: 0 }]);
    expect(await run('requeue', id)).toEqual({ code: 1, lines: [`refused: no parked event has the id ${id}`] });
  });

  it('refuses an id that the consumer would refuse, says what to do, and does it when asked', async () => {
    await park();
    const old = createRequestIds({ nowMs: () => Date.now() - 24 * 3_600_000 })();
    await outbox.database.rows('UPDATE outbox_events SET event_id = $1', [old]);
    expect(await run('requeue', old)).toEqual({
      code: 1,
      lines: [expect.stringMatching(/^refused: its consumer would refuse the id as expired\..*--new-id$/)],
    });
    const { code, lines } = await run('requeue', old, '--new-id');
    expect(code).toBe(0);
    const [event] = await storedEvents(outbox);
    expect(lines).toEqual([`requeued ${event?.event_id}, which was ${old}`]);
    expect(event).toMatchObject({ previous_id: old, state: 'pending' });
  });

  it('takes the id of a refund for days, by itself and with all others: its consumer goes by another key', async () => {
    await park();
    const old = createRequestIds({ nowMs: () => Date.now() - 6 * 24 * 3_600_000 })();
    const parked = () =>
      outbox.database.rows(
        `WITH aggregate AS (UPDATE outbox_aggregates SET state = 'parked')
         UPDATE outbox_events SET event_id = $1, type = $2, state = 'parked'`,
        [old, REFUND_RESERVED],
      );
    await parked();
    expect(await run('requeue', old)).toEqual({ code: 0, lines: [`requeued ${old}`] });
    await parked();
    expect(await run('requeue', '--all')).toEqual({ code: 0, lines: ['requeued 1 parked events'] });
    expect(await storedEvents(outbox)).toMatchObject([{ event_id: old, state: 'pending' }]);
  });

  it('requeues all parked events, but for those whose id would be refused', async () => {
    await park();
    const old = createRequestIds({ nowMs: () => Date.now() - 24 * 3_600_000 })();
    await outbox.database.rows(`UPDATE outbox_events SET event_id = $1, aggregate_id = 'old'`, [old]);
    await outbox.database.rows(`UPDATE outbox_aggregates SET aggregate_id = 'old'`);
    await outbox.add({ aggregateId: 'p-2' });
    await outbox.add({ aggregateId: 'p-3' });
    const relay = outbox.relay({ maxAttempts: 1, deliver: () => Promise.reject(new Error('away')) });
    expect((await relay.runOnce()).parked).toBe(2);
    expect(await run('requeue', '--all')).toEqual({
      code: 1,
      lines: [
        'requeued 2 parked events',
        'left 1 whose id their consumer would refuse as expired; requeue them one by one',
      ],
    });
    expect((await storedEvents(outbox)).map(({ state }) => state)).toEqual(['parked', 'pending', 'pending']);
    await outbox.database.rows(`DELETE FROM outbox_events WHERE event_id = $1`, [old]);
    expect(await run('requeue', '--all')).toEqual({ code: 0, lines: ['requeued 0 parked events'] });
  });

  it.each([
    [['requeue'], 'expected list [--limit <n>], requeue <event-id> [--new-id], or requeue --all'],
    [['requeue', 'x'], 'requeue: expected the id of an event, as the list shows it'],
    [['requeue', newRequestId(), newRequestId()], 'expected list'],
    [['list', '--new-id'], 'expected list'],
    [['list', '--limit', '0'], '--limit: expected a whole number from 1 to 10000'],
    [['drop'], 'expected list'],
    [['list', '--all'], 'expected list'],
    [['requeue', '--all', newRequestId()], 'expected list'],
    [['requeue', '--all', '--new-id'], 'expected list'],
  ])('does not understand %j, and says what it would', async (args, message) => {
    const { code, lines } = await run(...args);
    expect(code).toBe(2);
    expect(lines.at(-1)).toContain(message);
  });

  it('is one of the commands', async () => {
    const program = runProgram(['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), 'help']);
    expect(await program.exited).toBe(0);
    expect(program.output()).toContain(
      'grpc-idempotency outbox [list [--limit <n>] | requeue <event-id> [--new-id] | requeue --all]',
    );
  });
});
