import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from './processes';
import { until } from './until';

/** Where the files of the embedded database of a data directory lie: in it, or where it points to. */
async function locate(dataDirectory: string): Promise<string> {
  const pointed = await readFile(join(dataDirectory, 'postgres-location'), 'utf8').catch(() => undefined);
  return pointed?.trim() ?? join(dataDirectory, 'postgres');
}

/** The process id that the database of a data directory noted; undefined once it was stopped in good order. */
export async function notedPostgres(dataDirectory: string): Promise<number | undefined> {
  const file = join(await locate(dataDirectory), 'cluster', 'postmaster.pid');
  const noted = await readFile(file, 'utf8').catch(() => undefined);
  return noted === undefined ? undefined : Number.parseInt(noted, 10);
}

/** Where the running database of a data directory is reached, by those who may read its password. */
export async function connectionStringOf(dataDirectory: string): Promise<string> {
  const directory = await locate(dataDirectory);
  const password = (await readFile(join(directory, 'password'), 'utf8')).trim();
  // The fourth line is the port.
  const port = (await readFile(join(directory, 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[3] ?? '';
  return `postgresql://postgres:${encodeURIComponent(password)}@127.0.0.1:${port.trim()}/postgres`;
}

/** Resolves when the database of a data directory has stopped in good order and its process, if given, is gone. */
export async function postgresStopped(dataDirectory: string, pid?: number): Promise<void> {
  await until('the database was stopped in good order', async () => (await notedPostgres(dataDirectory)) === undefined);
  if (pid !== undefined) await until('its process is gone', async () => !(await isAlive(pid)));
}

/**
 * Removes a data directory and the files it points to, once its database runs no more: one whose service was killed still
 * stops, and writes while it does.
 */
export async function removeDataDirectory(dataDirectory: string): Promise<void> {
  const pid = await notedPostgres(dataDirectory);
  if (pid !== undefined) await until('its database has stopped', async () => !(await isAlive(pid)));
  await rm(await locate(dataDirectory), { recursive: true, force: true });
  await rm(dataDirectory, { recursive: true, force: true });
}
