import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/database/embedded-postgres';
import { clusterData } from '../../src/database/postgres-cluster';
import { startServer, stopServer } from '../../src/database/postgres-server';
import { inCluster, makeTemporaryDirectory } from '../support/postgres';
import { childrenOf, isAlive } from '../support/processes';
import { until } from '../support/until';

const WATCHDOG = 'postgres-watchdog';

describe('when a process that has a server watched is killed', () => {
  let dataDirectory: string;
  let postgres: EmbeddedPostgres;
  let pidFile: string;

  beforeAll(async () => {
    dataDirectory = await makeTemporaryDirectory();
    postgres = await startEmbeddedPostgres({ dataDirectory, durable: false });
    pidFile = join(clusterData(postgres.cluster), 'postmaster.pid');
  });
  afterAll(async () => {
    await postgres.stop();
    await rm(dataDirectory, { recursive: true, force: true });
  });

  const answers = (): Promise<void> =>
    inCluster(postgres.connectionString, async (client) => void (await client.query('SELECT 1')));

  /** Returns what kills the watching process, and resolves when its watchdog has done its work. */
  async function watch(): Promise<() => Promise<void>> {
    const main = join(__dirname, '..', 'support', 'watchdog-process.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', main, JSON.stringify(postgres.cluster)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const [watchdog = NaN] = await childrenOf(child.pid ?? NaN, WATCHDOG);
    expect(await isAlive(watchdog)).toBe(true);
    return async () => {
      child.kill('SIGKILL');
      await until('the watchdog has ended', async () => !(await isAlive(watchdog)));
    };
  }

  it('the server is stopped in good order', async () => {
    const pid = Number.parseInt(await readFile(pidFile, 'utf8'), 10);
    const kill = await watch();
    await kill();
    await until('the server is gone', async () => !(await isAlive(pid)));
    expect(await readFile(join(postgres.cluster.directory, 'log'), 'utf8')).toContain('received fast shutdown request');
    await startServer(postgres.cluster, { port: postgres.port, settings: { fsync: 'off' } });
  });

  it('the server of a later start stays, even where it has the same process id', async () => {
    const noted = await readFile(pidFile, 'utf8');
    const [pid, data, startTime, ...rest] = noted.split('\n');
    await writeFile(pidFile, [pid, data, String(Number(startTime) - 60), ...rest].join('\n'));
    const kill = await watch();
    await writeFile(pidFile, noted);
    await kill();
    await answers();
  });

  it('another program that has the process id of the server by now stays', async () => {
    await stopServer(postgres.cluster);
    const stranger = spawn('/bin/sh', ['-c', 'read -r line'], { stdio: ['pipe', 'ignore', 'ignore'] });
    await writeFile(pidFile, `${String(stranger.pid)}\n${clusterData(postgres.cluster)}\n1\n`);
    const kill = await watch();
    await kill();
    expect(await isAlive(stranger.pid ?? NaN)).toBe(true);
    stranger.stdin.end();
    await once(stranger, 'exit');
    expect(stranger.signalCode).toBeNull();
    await rm(pidFile);
    await startServer(postgres.cluster, { port: postgres.port, settings: { fsync: 'off' } });
    await answers();
  });

  it('and after a stop in good order, nobody watches any more', async () => {
    expect(await childrenOf(process.pid, clusterData(postgres.cluster))).toHaveLength(1);
    await postgres.stop();
    expect(await childrenOf(process.pid, clusterData(postgres.cluster))).toEqual([]);
  });
});
