import { parseArgs } from 'node:util';
import { readConfig } from '../config';
import { migrate, missingMigrations } from '../database/migrate';
import { refuseMissing } from '../database/prepare-schema';
import { type Command, EXIT } from './command';
import { withDatabase } from './command-database';

/** `migrate`: applies what is missing, or with `--check` only looks, in the database that the service would use. */
export const migrateCommand: Command = {
  name: 'migrate',
  usage: '[--check]',
  summary: 'apply the migrations that are missing in the database',
  details: [
    'without DATABASE_URL it makes the embedded database where there is none; --check and the other commands never do',
    '--check applies none, names those that are missing, and exits with 1 while there are any',
  ],
  example: 'grpc-idempotency migrate --check',
  run: async ({ args, environment, print, printError: announce }) => {
    const { values } = parseArgs({ args: [...args], options: { check: { type: 'boolean', default: false } } });
    const use = { config: readConfig(environment), announce, mayCreate: !values.check };
    return withDatabase(use, async (connectionString) => {
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
