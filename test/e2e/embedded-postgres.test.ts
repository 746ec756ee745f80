import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import { DataDirectoryInUse } from '../../src/database/data-directory-hold';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/database/embedded-postgres';
import { serverPid, startServer, stopServer } from '../../src/database/postgres-server';
import { postgresStopped, removeDataDirectory } from '../support/data-directory';
import { makeTemporaryDirectory } from '../support/postgres';

let parent: string;
let dataDirectory: string;
let started: EmbeddedPostgres[];
let children: ChildProcess[];

beforeEach(async () => {
  parent = await makeTemporaryDirectory();
  dataDirectory = join(parent, 'data');
  started = [];
  children = [];
});

afterEach(async () => {
  children.forEach((child) => child.kill('SIGKILL'));
  await Promise.all(started.map((postgres) => postgres.stop('immediate')));
  await removeDataDirectory(dataDirectory);
  await rm(parent, { recursive: true, force: true });
});

async function start(lines: string[] = [], durable = false): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDirectory, durable, onLog: (line) => lines.push(line) });
  started.push(postgres);
  return postgres;
}

/** Starts the database in a process of its own, in a process group of its own, as a terminal would. */
async function startInProcess() {
  const script = join(__dirname, '..', 'support', 'embedded-postgres-process.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDirectory], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string) as Record<string, string>;
  return { child, pid: child.pid as number, next, first: await next() };
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

test('a new database is durable, in UTF-8 and UTC, for this machine and for its password only', async () => {
  const lines: string[] = [];
  const { connectionString } = await start(lines, true);
  expect(lines).toEqual([expect.stringContaining(`A new database was created in ${dataDirectory}`)]);
  const names = ['fsync', 'synchronous_commit', 'server_encoding', 'TimeZone', 'listen_addresses'];
  const values = await query(
    connectionString,
    `SELECT current_setting(name) AS value FROM unnest('{${names.join(',')}}'::text[]) name`,
  );
  expect(values.map((row) => row['value'])).toEqual(['on', 'on', 'UTF8', 'UTC', '127.0.0.1']);
  const wrong = new URL(connectionString);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
  expect((await stat(join(dataDirectory, 'postgres', 'password'))).mode & 0o077).toBe(0);
});

test('the next start finds what the first one wrote, and says nothing about a new database', async () => {
  const first = await start();
  await query(first.connectionString, 'CREATE TABLE kept AS SELECT 42 AS answer');
  await first.stop();
  await first.stop();
  const lines: string[] = [];
  const second = await start(lines);
  expect(await query(second.connectionString, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  expect(lines).toEqual([]);
});

test('a second start while the first one runs is refused and leaves the first one alone', async () => {
  const first = await start();
  await expect(start()).rejects.toThrow(DataDirectoryInUse);
  expect(await query(first.connectionString, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  await first.stop();
  await start();
});

test('two processes that start at once: one wins, the other is told', async () => {
  const starters = await Promise.all([startInProcess(), startInProcess()]);
  const errors = starters.map((starter) => starter.first['error']).filter((error) => error !== undefined);
  expect(errors).toEqual([expect.stringMatching(/is in use .* DATA_DIRECTORY/)]);
  const winner = starters.find((starter) => starter.first['error'] === undefined);
  process.kill(winner?.pid as number, 'SIGINT');
  await once(winner?.child as ChildProcess, 'exit');
});

test('Ctrl-C in the terminal reaches us and not the database: what runs can still commit', async () => {
  const { child, pid, next } = await startInProcess();
  const exit = once(child, 'exit');
  // A terminal signals the whole process group.
  process.kill(-pid, 'SIGINT');
  expect(await next()).toEqual({ answer: 'still here' });
  expect(await exit).toEqual([0, null]);
  expect(await readdir(join(dataDirectory, 'postgres', 'cluster'))).not.toContain('postmaster.pid');
});

test('kill -9 of its starter stops the database in good order, and the next start finds its contents', async () => {
  const { child, pid, first } = await startInProcess();
  await query(String(first['connectionString']), 'CREATE TABLE kept AS SELECT 42 AS answer');
  process.kill(pid, 'SIGKILL');
  await once(child, 'exit');
  await postgresStopped(dataDirectory);
  const next = await start();
  expect(await query(next.connectionString, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
});

test('a server that runs although nobody holds the directory is stopped in good order and started anew', async () => {
  const first = await start();
  await first.stop();
  const left = new URL(first.connectionString);
  left.port = String(await startServer(first.cluster));
  await query(left.href, 'CREATE TABLE kept AS SELECT 42 AS answer');
  const next = await start();
  expect(await query(next.connectionString, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  await expect(query(left.href, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('the process id of a crashed server that now belongs to another program neither blocks nor hurts', async () => {
  const first = await start();
  const { cluster } = first;
  await first.stop('fast');
  const stranger = spawn('/bin/sh', ['-c', 'read wait'], { ...cluster.account, stdio: ['pipe', 'ignore', 'ignore'] });
  children.push(stranger);
  const pidFile = join(dataDirectory, 'postgres', 'cluster', 'postmaster.pid');
  await writeFile(pidFile, `${String(stranger.pid)}\n`);
  expect(await serverPid(cluster)).toBeUndefined();
  await writeFile(pidFile, `${String(stranger.pid)}\n`);
  await stopServer(cluster);
  const second = await start();
  expect(await query(second.connectionString, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
});

test('remains of a creation that was cut short are neither used nor kept', async () => {
  const remains = join(dataDirectory, 'postgres.new-0badcafe', 'cluster');
  await mkdir(remains, { recursive: true });
  await writeFile(join(remains, 'PG_VERSION'), '18\n');
  await start();
  expect(await readdir(dataDirectory)).toEqual(['hold', 'postgres']);
});

test('a start that fails says why, and frees the directory', async () => {
  const first = await start();
  await first.stop();
  const failing = startEmbeddedPostgres({ dataDirectory, durable: false, settings: { shared_buffers: 'nonsense' } });
  await expect(failing).rejects.toThrow(/did not start[^]*shared_buffers/);
  await start();
});
