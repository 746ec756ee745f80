import { resolve } from 'node:path';
import type { Config } from '../config';
import { DataDirectoryInUse } from '../database/data-directory-hold';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../database/embedded-postgres';
import { missingMigrations } from '../database/migrate';
import { refuseMissing } from '../database/prepare-schema';
import { OperatorError } from '../operator-error';
import { hasDatabase } from './existing-database';
import { oneLine } from './record-text';
import { findRunningDatabase } from './running-database';

/** Which database a command works on, and how. */
export interface DatabaseUse {
  readonly config: Pick<Config, 'databaseUrl' | 'dataDirectory'>;
  /** Told in one line which database it is, without its password. Undefined for commands that print for programs. */
  readonly announce: ((line: string) => void) | undefined;
  /** Whether the embedded database is made where there is none; of all commands only `migrate` does. Default: false. */
  readonly mayCreate?: boolean;
}

/** There is no embedded database where a command looked for one. */
class NoDatabase extends OperatorError {
  override readonly name = 'NoDatabase';

  constructor(dataDirectory: string) {
    super(`no database in ${oneLine(dataDirectory)}: set DATA_DIRECTORY or DATABASE_URL as the service does`);
  }
}

/**
 * Runs `work` on the database that the service would use. The embedded one is used where it runs beside a service, else
 * started for it, and stopped.
 *
 * @throws NoDatabase where there is none, and none may be made; nothing is left behind
 */
export async function withDatabase<Result>(
  { config, announce, mayCreate = false }: DatabaseUse,
  work: (connectionString: string) => Promise<Result>,
): Promise<Result> {
  const { databaseUrl, dataDirectory } = config;
  if (databaseUrl !== undefined) {
    announce?.(`database: ${withoutSecrets(databaseUrl)}`);
    return work(databaseUrl);
  }
  const directory = resolve(dataDirectory);
  // An empty database would be told apart from the right one by nothing but what is missing in it.
  if (!mayCreate && !(await hasDatabase(directory))) throw new NoDatabase(directory);
  announce?.(oneLine(`database: the embedded one in ${directory}`));
  const embedded = await startOrFind(dataDirectory);
  try {
    return await work(embedded.connectionString);
  } finally {
    await embedded.stop();
  }
}

/**
 * Runs `work` on a database that has the tables of this version.
 *
 * @throws MigrationRefused where migrations are missing; errors of the driver where it can't be reached
 */
export async function withTables<Result>(
  use: DatabaseUse,
  work: (connectionString: string) => Promise<Result>,
): Promise<Result> {
  return withDatabase(use, async (connectionString) => {
    refuseMissing(await missingMigrations({ connectionString }));
    return work(connectionString);
  });
}

/** Parameters of a connection string that say which database it is; others may hold secrets. */
const NAMING: readonly string[] = ['host', 'port', 'schema'];

function withoutSecrets(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.password = '';
  url.hash = '';
  for (const name of [...url.searchParams.keys()]) if (!NAMING.includes(name)) url.searchParams.delete(name);
  return url.href;
}

async function startOrFind(dataDirectory: string): Promise<Pick<EmbeddedPostgres, 'connectionString' | 'stop'>> {
  try {
    return await startEmbeddedPostgres({ dataDirectory, onLog: () => undefined });
  } catch (error) {
    const connectionString =
      error instanceof DataDirectoryInUse ? await findRunningDatabase(error.dataDirectory) : undefined;
    if (connectionString === undefined) throw error;
    return { connectionString, stop: () => Promise.resolve() };
  }
}
