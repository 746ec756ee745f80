import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, MigrationRefused } from '../../src/database/migrate';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

const MIGRATIONS = join(__dirname, '..', '..', 'prisma', 'migrations');
const NAMES = readdirSync(MIGRATIONS, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort();

let database: TestDatabase;
let directory: string;

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  directory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-migrations-'));
});

afterEach(async () => {
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

const run = () => migrate({ connectionString: database.connectionString, directory });

async function addMigration(name: string, sql: string): Promise<void> {
  await mkdir(join(directory, name), { recursive: true });
  await writeFile(join(directory, name, 'migration.sql'), sql);
}

test('an empty database gets all migrations in order, recorded as Prisma records them; again changes nothing', async () => {
  const { connectionString } = database;
  expect(await migrate({ connectionString })).toEqual(NAMES);
  const record = 'SELECT * FROM _prisma_migrations ORDER BY started_at';
  const first = await database.rows(record);
  const sql = await readFile(join(MIGRATIONS, NAMES[0] as string, 'migration.sql'));
  expect(first.map((row) => row['migration_name'] as string)).toEqual(NAMES);
  expect(first[0]).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    checksum: createHash('sha256').update(sql).digest('hex'),
    finished_at: expect.any(Date) as Date,
    migration_name: NAMES[0],
    logs: null,
    rolled_back_at: null,
    started_at: expect.any(Date) as Date,
    applied_steps_count: 1,
  });
  expect(await migrate({ connectionString })).toEqual([]);
  expect(await database.rows(record)).toEqual(first);
});

test('several at once on an empty database all come up, and each migration runs once, round after round', async () => {
  await addMigration('1_first', 'CREATE TABLE first (id int)');
  await addMigration('2_second', 'CREATE TABLE second (id int); INSERT INTO second VALUES (1)');
  for (let round = 0; round < 10; round += 1) {
    const applied = await Promise.all([run(), run(), run(), run()]);
    expect(applied.flat().sort()).toEqual(['1_first', '2_second']);
    await database.rows('DROP TABLE first, second, _prisma_migrations');
  }
});

test('two processes that start together both come up', async () => {
  // The lock that they take is held until both wait for it, so that they truly meet.
  const holder = await database.pool.connect();
  await holder.query('SELECT pg_advisory_lock(7283645019)');
  const code =
    `require('tsx/cjs'); const { migrate } = require('./src/database/migrate');` +
    `migrate({ connectionString: process.argv[1] }).then((names) => console.log(JSON.stringify(names)));`;
  const starters = [0, 1].map(async () => {
    const child = spawn(process.execPath, ['-e', code, database.connectionString], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [exitCode] = (await once(child, 'close')) as [number | null];
    return { exitCode, names: JSON.parse(output) as string[] };
  });
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
  while ((await database.rows(waiting)).length < 2) await new Promise(setImmediate);
  holder.release(true);
  const outcomes = await Promise.all(starters);
  expect(outcomes.map((outcome) => outcome.exitCode)).toEqual([0, 0]);
  expect(outcomes.flatMap((outcome) => outcome.names).sort()).toEqual(NAMES);
});

test('a statement that fails takes its whole migration back, and the earlier ones stay', async () => {
  await addMigration('1_first', 'CREATE TABLE first (id int)');
  await addMigration('2_second', 'CREATE TABLE second (id int); SELECT 1 / 0');
  await expect(run()).rejects.toMatchObject({ code: '22012' });
  expect(await database.rows('SELECT migration_name FROM _prisma_migrations')).toEqual([{ migration_name: '1_first' }]);
  expect(await database.rows(`SELECT to_regclass('first')::text AS first, to_regclass('second') AS second`)).toEqual([
    { first: 'first', second: null },
  ]);
  await addMigration('2_second', 'CREATE TABLE second (id int)');
  expect(await run()).toEqual(['2_second']);
});

test('an applied migration that was edited is refused by name, and nothing newer is applied', async () => {
  await addMigration('1_first', 'CREATE TABLE first (id int)');
  await run();
  await addMigration('1_first', 'CREATE TABLE first (id bigint)');
  await addMigration('2_second', 'CREATE TABLE second (id int)');
  await expect(run()).rejects.toThrow(MigrationRefused);
  await expect(run()).rejects.toThrow('"1_first" was edited');
  expect(await database.count('_prisma_migrations')).toBe(1);
});

test('a migration that this version does not know is refused by name', async () => {
  await addMigration('1_first', 'CREATE TABLE first (id int)');
  await addMigration('2_second', 'CREATE TABLE second (id int)');
  await run();
  await rm(join(directory, '2_second'), { recursive: true });
  await expect(run()).rejects.toThrow('"2_second", which this version does not know');
});

test('a migration that another tool left half-way is refused, and one that it marked as rolled back runs', async () => {
  await addMigration('1_first', 'CREATE TABLE first (id int)');
  await run();
  await database.rows('UPDATE _prisma_migrations SET finished_at = NULL');
  await expect(run()).rejects.toThrow('"1_first" failed half-way');
  await database.rows('UPDATE _prisma_migrations SET rolled_back_at = now()');
  await database.rows('DROP TABLE first');
  expect(await run()).toEqual(['1_first']);
});

test('a read-only node is refused with the next step, although nothing is left to apply', async () => {
  const { connectionString } = database;
  await migrate({ connectionString });
  const name = new URL(connectionString).pathname.slice(1);
  await database.rows(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  await expect(migrate({ connectionString })).rejects.toThrow(MigrationRefused);
  await expect(migrate({ connectionString })).rejects.toThrow(/is read-only .* point DATABASE_URL at it/);
});

test('an unreachable database is an error that says so', async () => {
  const unreachable = new URL(database.connectionString);
  unreachable.port = '1';
  await expect(migrate({ connectionString: unreachable.href })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
