import { randomBytes } from 'node:crypto';
import { chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { PostgresAccount } from './postgres-account';
import type { PostgresBinaries } from './postgres-binaries';
import { runTool } from './run-tool';
import { uniqueSuffix } from './unique-suffix';
import { OperatorError } from '../operator-error';

/** The files of one database server. */
export interface PostgresCluster {
  readonly binaries: PostgresBinaries;
  /** Who runs it; undefined: ourselves. */
  readonly account: PostgresAccount | undefined;
  /** Holds `cluster` (Postgres' own data directory), `password` and `log`. It exists only when it is complete. */
  readonly directory: string;
}

/** Where and for whom to create a cluster. */
export interface OpenClusterOptions extends PostgresCluster {
  /** Whether the new files must survive a power cut before this returns. */
  readonly durable: boolean;
}

/** Postgres' own data directory. */
export function clusterData(cluster: Pick<PostgresCluster, 'directory'>): string {
  return join(cluster.directory, 'cluster');
}

/** The password of the user `postgres` of this cluster. Generated at its creation; readable by its owner only. */
export async function readPassword(cluster: Pick<PostgresCluster, 'directory'>): Promise<string> {
  return (await readFile(join(cluster.directory, 'password'), 'utf8')).trim();
}

/**
 * Takes the cluster that is there, or creates it: UTF-8, byte order, UTC, passwords with SCRAM, reachable from this
 * machine only. It is built under another name and renamed when it is complete, so that one that was cut short is
 * never used; remains of such are removed. One process at a time: the caller holds the data directory.
 *
 * @returns whether it was created now
 * @throws Error with what initdb printed, when it fails
 */
export async function openCluster(options: OpenClusterOptions): Promise<boolean> {
  const { account, binaries, directory } = options;
  const parent = dirname(directory);
  const unfinishedPrefix = `${basename(directory)}.new-`;
  const remains = (await readdir(parent)).filter((name) => name.startsWith(unfinishedPrefix));
  await Promise.all(remains.map((name) => rm(join(parent, name), { recursive: true, force: true })));
  if (await exists(directory)) return false;

  const unfinished = join(parent, unfinishedPrefix + uniqueSuffix());
  const password = join(unfinished, 'password');
  await mkdir(unfinished, { mode: 0o700 });
  await writeFile(password, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
  if (account !== undefined) {
    await chown(unfinished, account.uid, account.gid);
    await chown(password, account.uid, account.gid);
  }
  const { code, output } = await runTool(
    binaries.initdb,
    [
      `--pgdata=${join(unfinished, 'cluster')}`,
      '--username=postgres',
      `--pwfile=${password}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      ...(options.durable ? [] : ['--no-sync']),
      ...['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'timezone=UTC', 'log_timezone=UTC'].flatMap(
        (setting) => ['-c', setting],
      ),
    ],
    { account },
  );
  if (code !== 0) {
    await rm(unfinished, { recursive: true, force: true });
    throw new OperatorError(`The database could not be created in ${directory}: ${output}`);
  }
  await rename(unfinished, directory);
  return true;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
