import { COMMANDS } from '../../src/cli/commands';
import { runCommand } from '../../src/cli/run-command';
import { newRequestId } from '../../src/idempotency/index';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

let database: TestDatabase;

beforeAll(async () => (database = await createTestDatabase({ empty: true })));
afterAll(() => database.drop());

/** What a command says of a database, but for the line that names it, and how it ends. */
async function run(args: readonly string[], connectionString: string) {
  const lines: string[] = [];
  const print = (line: string): void => void (line.startsWith('database: ') || lines.push(line));
  const environment = { DATABASE_URL: connectionString };
  const code = await runCommand({ commands: COMMANDS, args, environment, print, printError: print });
  return { code, lines };
}

const all = [
  ['outbox'],
  ['outbox', 'requeue', '--all'],
  ['maintain'],
  ['reconcile'],
  ['inspect', '--parked'],
  ['inspect', '--request-id', newRequestId()],
].map((args) => ({ args, name: args.slice(0, 2).join(' ') }));

describe.each(all)('grpc-idempotency $name', ({ args }) => {
  it('says of a database without tables how they get there', async () => {
    const { code, lines } = await run(args, database.connectionString);
    expect(code).toBe(1);
    expect(lines).toEqual([
      expect.stringMatching(/^Migrations are missing in this database:\n[^]*"npx grpc-idempotency migrate"/),
    ]);
    expect(lines.join()).not.toMatch(/\n\s+at /);
  });

  it.each([
    ['that is not there', (url: URL) => (url.pathname = '/nowhere'), 'database "nowhere" does not exist'],
    ['that can not be reached', (url: URL) => (url.port = '1'), 'ECONNREFUSED'],
  ])('says of a database %s that it is so, in one line', async (_, change, said) => {
    const url = new URL(database.connectionString);
    change(url);
    const { code, lines } = await run(args, url.href);
    expect(code).toBe(1);
    expect(lines).toEqual([expect.stringContaining(said)]);
    expect(lines.join()).not.toContain('\n');
  });
});
