import { createServer } from 'node:net';
import { Client } from 'pg';
import type { Config } from './config';
import { DataDirectoryInUse, holdDataDirectory } from './database/data-directory-hold';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './database/embedded-postgres';
import { OperatorError } from './operator-error';

/** The service can't start. Its message names every obstacle and the next step, and is meant to be printed as it is. */
export class StartRefused extends OperatorError {
  override readonly name = 'StartRefused';

  constructor(readonly obstacles: readonly string[]) {
    super(obstacles.join('\n'));
  }
}

/** How long a database is waited for that does not answer, milliseconds. */
const CONNECTION_TIMEOUT_MS = 5_000;

/**
 * Takes what only one process can have, and says everything that is taken at once: the ports, and the data directory of
 * the embedded database. A database of our own is not started for a service that can't be.
 *
 * @returns the embedded database; undefined where DATABASE_URL names another, which has then answered
 * @throws {StartRefused} when something is in use, or the database of DATABASE_URL does not let us in
 */
export async function takeExclusives(
  { grpcHost, grpcPort, opsHost, opsPort, databaseUrl, dataDirectory }: Config,
  onLog: (line: string) => void,
): Promise<EmbeddedPostgres | undefined> {
  const obstacles = [
    ...(await portObstacles(grpcHost, grpcPort, 'GRPC')),
    ...(await portObstacles(opsHost, opsPort, 'OPS')),
  ];
  if (databaseUrl !== undefined) {
    obstacles.push(...(await databaseObstacles(databaseUrl)));
    if (obstacles.length > 0) throw new StartRefused(obstacles);
    return undefined;
  }
  try {
    if (obstacles.length === 0) return await startEmbeddedPostgres({ dataDirectory, onLog });
    await (await holdDataDirectory(dataDirectory)).release();
  } catch (error) {
    if (!(error instanceof DataDirectoryInUse)) throw error;
    obstacles.push(error.message);
  }
  throw new StartRefused(obstacles);
}

/** Tries a database by connecting to it once. Its errors come without the password; its URL would not. */
async function databaseObstacles(databaseUrl: string): Promise<readonly string[]> {
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: CONNECTION_TIMEOUT_MS });
  // A connection that breaks again at once is found by the next statement.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.end();
    return [];
  } catch (error) {
    return [
      `The database at ${new URL(databaseUrl).host} (DATABASE_URL) can't be used: ${reasonOf(error)}. Start it, or ` +
        'correct DATABASE_URL.',
    ];
  }
}

/** Of a name with several addresses, the error of them all has a code and no text. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return error.message === '' ? String((error as NodeJS.ErrnoException).code) : error.message;
}

/** What is said of an address that nobody can listen on here: it is of another machine, or of none. */
const NOT_OURS = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'];

/**
 * Tries a port by listening on it for a moment; for port 0 on any, since the address may be wrong.
 *
 * @param prefix of the variables that name address and port
 */
async function portObstacles(host: string, port: number, prefix: 'GRPC' | 'OPS'): Promise<readonly string[]> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => {
      if (NOT_OURS.includes(code)) {
        resolve([`The address ${host} is none of this machine (${code}). Set ${prefix}_HOST to one that is.`]);
        return;
      }
      const what = code === 'EADDRINUSE' ? 'in use by another process' : `not usable (${code})`;
      resolve([`The port ${port} on ${host} is ${what}. Stop that process, or set ${prefix}_PORT to another port.`]);
    });
    server.listen(port, host, () => server.close(() => resolve([])));
  });
}
