import { cp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, makeTemporaryDirectory, type TestDatabase } from '../support/postgres';
import { ROOT, runProgram } from '../support/run-program';
import { until } from '../support/until';

/** A new database on a busy machine. */
jest.setTimeout(60_000);

const DEMO = ['--import', 'tsx', join('examples', 'demo.ts')];

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

describe('the demo, on a database that is there', () => {
  let database: TestDatabase;
  beforeEach(async () => (database = await createTestDatabase()));
  afterEach(() => database.drop());

  it('shows scene by scene that nobody was charged twice, and its counts are those of the table', async () => {
    const demo = runProgram(DEMO, { DATABASE_URL: database.connectionString });
    expect(await demo.exited).toBe(0);
    const counts = demo.output().match(/^ {2}= .*$/gm);
    expect(counts).toEqual([
      '  = attempts: 1, payments: 1, as it must be',
      '  = attempts: 3, payments: 1, as it must be',
      '  = attempts: 2, payments: 1, as it must be',
      '  = attempts: 3, payments: 1, as it must be',
    ]);
    const attempts = demo.output().match(/^\d\d:\d\d:\d\d\.\d{3} {2}…[0-9a-f]{7} {2}\d+ +\S+ +\d$/gm);
    expect(attempts).toHaveLength(9);
    expect(demo.output().trim().split('\n').at(-1)).toBe('Nobody was charged twice.');
    expect(await database.count('payments')).toBe(4);
  });

  it('ends with exit code 1 when a guard is missing', async () => {
    const copy = await copyPackage();
    const judge = join(copy, 'src', 'idempotency', 'store', 'judge.ts');
    const text = await readFile(judge, 'utf8');
    const guard = /^.*!sameRequest\(.*\n/m;
    expect(text).toMatch(guard);
    await writeFile(judge, text.replace(guard, ''));

    const demo = runProgram(DEMO, { DATABASE_URL: database.connectionString }, copy);
    expect(await demo.exited).toBe(1);
    expect(demo.output()).toContain('WRONG: expected 1 and paid, REQUEST_ID_REUSED');
    expect(demo.output().trim().split('\n').at(-1)).toBe('A count is wrong.');
    await rm(copy, { recursive: true, force: true });
  });
});

describe('the demo, on a database of its own', () => {
  const CREATED = /A new database was created in (.*)\/postgres\./;

  it('leaves nothing behind when its reader has seen enough', async () => {
    const demo = runProgram(DEMO);
    const [, directory = ''] = await demo.printed(CREATED);
    demo.stopReading();
    expect(await demo.exited).toBe(0);
    expect(await isThere(directory)).toBe(false);
  });

  it('leaves nothing behind when it is interrupted', async () => {
    const demo = runProgram(DEMO);
    const [, directory = ''] = await demo.printed(CREATED);
    demo.kill('SIGINT');
    expect(await demo.exited).toBe(1);
    expect(demo.output()).toMatch(/^ended by SIGINT before the last scene$/m);
    await until('its files are gone', async () => !(await isThere(directory)));
  });
});

/** What the demo needs of this package, in a directory of its own. */
async function copyPackage(): Promise<string> {
  const copy = await makeTemporaryDirectory();
  for (const name of ['src', 'examples', 'prisma', 'package.json', 'tsconfig.json']) {
    await cp(join(ROOT, name), join(copy, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
