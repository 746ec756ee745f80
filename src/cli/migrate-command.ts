import { parseArgs } from 'node:util';
import { type Config, readConfig } from '../config';
import { startEmbeddedPostgres } from '../database/embedded-postgres';
import { migrate, missingMigrations } from '../database/migrate';
import { refuseMissing } from '../database/prepare-schema';
import { type Command, EXIT } from './command';

/** `migrate`: applies what is missing, or with `--check` only looks, in the database that the service would use. */
export const migrateCommand: Command = {
  name: 'migrate',
  usage: '[--check]',
  summary: 'apply the migrations that are missing in the database; --check refuses while there are any',
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

/** Runs `work` on the database that the service would use; the embedded one is started for it, and stopped. */
export async function withDatabase<Result>(
  { databaseUrl, dataDirectory }: Config,
  work: (connectionString: string) => Promise<Result>,
): Promise<Result> {
  if (databaseUrl !== undefined) return work(databaseUrl);
  const embedded = await startEmbeddedPostgres({ dataDirectory, onLog: () => undefined });
  try {
    return await work(embedded.connectionString);
  } finally {
    await embedded.stop();
  }
}
