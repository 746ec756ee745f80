import { readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { clusterData, readPassword } from '../database/postgres-cluster';
import { locatePostgres } from '../database/postgres-location';

/** Line of `postmaster.pid` that holds the port. */
const PORT_LINE = 3;

/**
 * The embedded database that a running service has started on a data directory, so that commands can be run beside it;
 * undefined where none is to be seen, or not by this user. Its files are only read.
 */
export async function findRunningDatabase(dataDirectory: string): Promise<string | undefined> {
  try {
    const { directory } = await locatePostgres({ dataDirectory: await realpath(dataDirectory), account: undefined });
    const cluster = { directory };
    const noted = await readFile(join(clusterData(cluster), 'postmaster.pid'), 'utf8');
    const port = Number(noted.split('\n')[PORT_LINE]);
    if (!Number.isInteger(port) || port < 1) return undefined;
    const password = encodeURIComponent(await readPassword(cluster));
    return `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  } catch (error) {
    // The system has said that a file is not there, or not for this user.
    if (typeof error === 'object' && error !== null && 'syscall' in error) return undefined;
    throw error;
  }
}
