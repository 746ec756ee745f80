import { migrate, type MigrateOptions, missingMigrations } from './migrate';
import { MigrationRefused } from './migration-refused';

/** What is done about migrations: apply them, refuse while one is missing, or leave them to somebody else. */
export type SchemaPreparation = 'run' | 'check' | 'never';

/**
 * Makes sure, at the start of a process, that the schema is one to run on (design 4.12). `never` does not even look: who
 * chooses it has migrated, and compared, before.
 *
 * @throws MigrationRefused and errors of the driver, as `migrate` does; with `check` also when a migration is missing
 */
export async function prepareSchema(preparation: SchemaPreparation, options: MigrateOptions): Promise<void> {
  switch (preparation) {
    case 'run':
      await migrate(options);
      return;
    case 'check':
      refuseMissing(await missingMigrations(options));
      return;
    case 'never':
      return;
  }
}

/**
 * Refuses while migrations are missing.
 *
 * @throws MigrationRefused that names them all, and how they get there
 */
export function refuseMissing(names: readonly string[]): void {
  if (names.length === 0) return;
  const list = names.map((name) => `  ${name}`).join('\n');
  throw new MigrationRefused(
    `Migrations are missing in this database:\n${list}\n` +
      'Apply them with "npx grpc-idempotency migrate", or start with MIGRATE=run.',
  );
}
