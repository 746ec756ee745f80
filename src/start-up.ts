import { Client } from 'pg';
import type { Config } from './config';
import { DataDirectoryInUse, holdDataDirectory } from './database/data-directory-hold';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from './database/embedded-postgres';
import { OperatorError } from './operator-error';
import { portObstacles } from './port-obstacles';

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
  embedded: Pick<EmbeddedPostgresOptions, 'onLog' | 'onEnded'>,
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
    if (obstacles.length === 0) return await startEmbeddedPostgres({ dataDirectory, ...embedded });
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
