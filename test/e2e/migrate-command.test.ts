import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { removeDataDirectory } from '../support/data-directory';
import { createTestDatabase, makeTemporaryDirectory, type TestDatabase } from '../support/postgres';
import { ROOT, runProgram } from '../support/run-program';

const NAMES = readdirSync(join(ROOT, 'prisma', 'migrations')).filter((name) => /^\d/.test(name));

/** Runs the program of `npx grpc-idempotency` to its end. */
async function cli(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const run = runProgram(['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), ...args], environment);
  const code = await run.exited;
  // Every command names its database.
  const lines = run.output().trimEnd().split('\n');
  return { code, lines: lines.filter((line) => !line.startsWith('database: ')) };
}

describe('grpc-idempotency migrate', () => {
  let database: TestDatabase;
  beforeAll(async () => (database = await createTestDatabase({ empty: true })));
  afterAll(() => database.drop());

  const migrate = (...args: readonly string[]) =>
    cli(['migrate', ...args], { DATABASE_URL: database.connectionString });

  it('--check refuses and names what is missing; without it that is applied and printed; then nothing is', async () => {
    expect(await migrate('--check')).toEqual({
      code: 1,
      lines: [
        'Migrations are missing in this database:',
        ...NAMES.map((name) => `  ${name}`),
        expect.stringContaining('npx grpc-idempotency migrate'),
      ],
    });
    expect(await database.rows(`SELECT to_regclass('_prisma_migrations') AS list`)).toEqual([{ list: null }]);

    expect(await migrate()).toEqual({ code: 0, lines: NAMES.map((name) => `applied ${name}`) });
    expect(await database.count('_prisma_migrations')).toBe(NAMES.length);

    expect(await migrate('--check')).toEqual({ code: 0, lines: ['no migration is missing'] });
    expect(await migrate()).toEqual({ code: 0, lines: ['no migration was missing'] });
  });

  it('refuses in one line what it cannot do, without the password', async () => {
    const url = 'postgresql://shop:s3cret@127.0.0.1:1/shop';
    const refused = await cli(['migrate'], { DATABASE_URL: url });
    expect(refused).toEqual({ code: 1, lines: ['connect ECONNREFUSED 127.0.0.1:1'] });

    const misspelt = await migrate('--chek');
    expect(misspelt.code).toBe(2);
    expect(misspelt.lines.at(-1)).toContain(`'--chek'`);
    const superfluous = await migrate('now');
    expect(superfluous.code).toBe(2);
  });

  it('takes the embedded database where no other is named, and leaves it stopped', async () => {
    const dataDirectory = await makeTemporaryDirectory();
    const environment = { DATA_DIRECTORY: dataDirectory };
    expect((await cli(['migrate'], environment)).lines).toEqual(NAMES.map((name) => `applied ${name}`));
    expect(await cli(['migrate', '--check'], environment)).toEqual({ code: 0, lines: ['no migration is missing'] });
    await removeDataDirectory(dataDirectory);
  }, 60_000);
});
