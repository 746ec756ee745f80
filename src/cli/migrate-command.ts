import { parseArgs } from 'node:util';
import { type Config, readConfig } from '../config';
import { DataDirectoryInUse } from '../database/data-directory-hold';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../database/embedded-postgres';
import { migrate, missingMigrations } from '../database/migrate';
import { refuseMissing } from '../database/prepare-schema';
import { type Command, EXIT } from './command';
import { findRunningDatabase } from './running-database';

/** `migrate`: applies what is missing, or with `--check` only looks, in the database that the service would use. */
export const migrateCommand: Command = {
  name: 'migrate',
  usage: '[--check]',
  summary: 'apply the migrations that are missing in the database',
  details: ['--check applies none, names those that are missing, and exits with 1 while there are any'],
  example: 'grpc-idempotency migrate --check',
  run: async ({ args, environment, print }) => {
    const { values } = parseArgs({ args: [...args], options: { check: { type: 'boolean', default: false } } });
    return withDatabase(readConfig(environment), async (connectionString) => {
      if (values.check) {
        refuseMissing(await missingMigrations({ connectionString }));
        print('no migration is missing');
        return EXIT.ok;
      }
      const applied = await migrate({ connectionString });
      for (const name of applied) print(`applied ${name}`);
      if (applied.length === 0) print('no migration was missing');
      return EXIT.ok;
    });
  },
};

/**
 * Runs `work` on the database that the service would use. The embedded one is used where it runs beside a service, else
 * started for it, and stopped.
 */
export async function withDatabase<Result>(
  { databaseUrl, dataDirectory }: Config,
  work: (connectionString: string) => Promise<Result>,
): Promise<Result> {
  if (databaseUrl !== undefined) return work(databaseUrl);
  const embedded = await startOrFind(dataDirectory);
  try {
    return await work(embedded.connectionString);
  } finally {
    await embedded.stop();
  }
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
