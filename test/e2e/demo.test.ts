import { cp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, makeTemporaryDirectory, type TestDatabase } from '../support/postgres';
import { childrenOf, isAlive } from '../support/processes';
import { ROOT, runProgram, type RunningProgram } from '../support/run-program';
import { until } from '../support/until';

/** A new database on a busy machine. */
jest.setTimeout(120_000);

const DEMO = ['--import', 'tsx', join('examples', 'demo.ts')];

const GUARDS = [
  {
    what: 'the comparison of requests',
    removed: [{ file: 'judge.ts', guard: /^.*!sameRequest\(.*\n/m }],
    told: 'WRONG: expected 1 and paid, REQUEST_ID_REUSED',
  },
  {
    what: 'the lease',
    removed: [
      { file: join('sql', 'claim.ts'), guard: /^ *AND record\.lease_until <= now\(\)\n/m },
      { file: 'claim-key.ts', guard: /^ *if \(found\.leaseLeftMs > 0\).*\n/m },
    ],
    told: 'WRONG: expected 1 and UNAVAILABLE, REQUEST_IN_PROGRESS, paid, replayed',
  },
];

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

describe('the demo, on a database that is there', () => {
  let database: TestDatabase;
  beforeAll(async () => (database = await createTestDatabase()));
  afterAll(() => database.drop());

  it('shows scene by scene that no intent was paid twice, and its counts are those of the table', async () => {
    const demo = runProgram(DEMO, { DATABASE_URL: database.connectionString });
    expect(await demo.exited).toBe(0);
    const counts = demo.output().match(/^ {2}= .*$/gm);
    expect(counts).toEqual([
      '  = attempts: 1, payments: 1, as it must be',
      '  = attempts: 3, payments: 1, as it must be',
      '  = attempts: 2, payments: 1, as it must be',
      '  = attempts: 3, payments: 1, as it must be',
      // Until the lease is over it comes again as often as it is told to.
      expect.stringMatching(/^ {2}= attempts: ([4-9]|1\d), payments: 1, as it must be$/),
    ]);
    const attempts = attemptsOf(demo);
    // The second of two that collide ends first; another amount under a key adds no payment.
    expect(attempts.slice(4, 9)).toMatchObject([
      { number: '1', amount: '12.50', outcome: 'paid', payments: '1' },
      { number: '2', amount: '99.00', outcome: 'REQUEST_ID_REUSED', payments: '1' },
      { number: '2', outcome: 'REQUEST_IN_PROGRESS', payments: '0' },
      { number: '1', outcome: 'paid', payments: '1' },
      { number: '3', outcome: 'replayed', payments: '1' },
    ]);
    const [crashed, ...after] = attempts.slice(9);
    expect(crashed).toMatchObject({ number: '1', process: 'p1', outcome: 'UNAVAILABLE', payments: '0' });
    expect(new Set(after.map(({ process }) => process))).toEqual(new Set(['p2']));
    expect(after.at(0)).toMatchObject({ number: '2', outcome: 'REQUEST_IN_PROGRESS', payments: '0' });
    expect(after.slice(-2)).toMatchObject([
      { outcome: 'paid', payments: '1' },
      { outcome: 'replayed', payments: '1' },
    ]);
    // Two operating system processes, neither of them the demo.
    const pids = new Map(attempts.map(({ process, pid }) => [process, Number(pid)]));
    expect(new Set([...pids.values(), demo.pid]).size).toBe(3);
    for (const pid of pids.values()) expect(await isAlive(pid)).toBe(false);
    expect(demo.output().trim().split('\n').slice(-2)).toEqual([
      'The card network was asked 6 times: once per payment, and once by the process that was killed.',
      'No intent was paid twice.',
    ]);
    expect(await database.count('payments')).toBe(5);
  });

  it('takes its services with it when it is killed', async () => {
    const demo = runProgram(DEMO, { DATABASE_URL: database.connectionString });
    await demo.printed(/^pay: /m);
    const services = await childrenOf(demo.pid, 'demo-service');
    expect(services).toHaveLength(2);
    demo.kill('SIGKILL');
    await until('its services are gone', async () => !(await Promise.all(services.map(isAlive))).includes(true));
  });

  it.each(GUARDS)('ends with exit code 1 when $what is missing', async ({ removed, told }) => {
    const copy = await copyPackage();
    for (const { file, guard } of removed) {
      const path = join(copy, 'src', 'idempotency', 'store', file);
      const text = await readFile(path, 'utf8');
      expect(text).toMatch(guard);
      await writeFile(path, text.replace(guard, ''));
    }

    const demo = runProgram(DEMO, { DATABASE_URL: database.connectionString }, copy);
    expect(await demo.exited).toBe(1);
    expect(demo.output()).toContain(told);
    // What the guard is not for goes well, also where the demo has been before.
    expect(demo.output()).toContain('= attempts: 1, payments: 1, as it must be');
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

/** The lines of the table. */
function attemptsOf(demo: RunningProgram): readonly Readonly<Record<string, string>>[] {
  const line =
    /^\d\d:\d\d:\d\d\.\d{3} {2}…[0-9a-f]{7} {2}(?<number>\d+) +(?<amount>[\d.]+) EUR {2}(?<process>p\d) (?<pid>\d+) +(?<outcome>\S+) +(?<payments>\d+)$/gm;
  return [...demo.output().matchAll(line)].map(({ groups = {} }) => groups);
}

/** What the demo needs of this package, in a directory of its own. */
async function copyPackage(): Promise<string> {
  const copy = await makeTemporaryDirectory();
  for (const name of ['src', 'examples', 'prisma', 'package.json', 'tsconfig.json']) {
    await cp(join(ROOT, name), join(copy, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
