import type { Client } from 'pg';
import type { MigrationFile } from './migration-files';
import { MigrationRefused } from './migration-refused';
import { isAtLeast } from './version-order';

interface AppliedMigration {
  readonly name: string;
  readonly checksum: string;
  readonly finished: boolean;
}

/**
 * Compares what a database has with the migrations of this version, and returns those that it has not, in order.
 *
 * A migration that this version does not know comes from a newer one. It is accepted where it says that this version can
 * run on it (table `idempotency_schema`), so that a newer version may migrate while this one still runs, and starts
 * again (design 4.12).
 *
 * @param version of this code
 * @throws MigrationRefused when an applied migration was edited, failed half-way under another tool, or excludes this
 *   version
 */
export async function findMissing(
  client: Client,
  files: readonly MigrationFile[],
  version: string,
): Promise<readonly MigrationFile[]> {
  const rows = await readApplied(client);
  const known = new Map(files.map((file) => [file.name, file]));
  for (const row of rows) refuseUnlessSound(row, known.get(row.name));
  const unknown = rows.filter(({ name }) => !known.has(name)).map(({ name }) => name);
  if (unknown.length > 0) refuseUnlessCompatible(unknown, await readOldestCode(client), version);
  const applied = new Set(rows.map(({ name }) => name));
  return files.filter(({ name }) => !applied.has(name));
}

async function readApplied(client: Client): Promise<readonly AppliedMigration[]> {
  if (!(await hasTable(client, '_prisma_migrations'))) return [];
  const { rows } = await client.query<AppliedMigration>(
    `SELECT migration_name AS name, checksum, finished_at IS NOT NULL AS finished
     FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY migration_name`,
  );
  return rows;
}

/** Migration → the oldest version that can run on it. */
async function readOldestCode(client: Client): Promise<ReadonlyMap<string, string>> {
  if (!(await hasTable(client, 'idempotency_schema'))) return new Map();
  const { rows } = await client.query<{ name: string; oldest: string }>(
    'SELECT migration_name AS name, oldest_code AS oldest FROM idempotency_schema',
  );
  return new Map(rows.map(({ name, oldest }) => [name, oldest]));
}

async function hasTable(client: Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>('SELECT to_regclass($1) IS NOT NULL AS exists', [name]);
  return rows[0]?.exists === true;
}

function refuseUnlessSound({ name, checksum, finished }: AppliedMigration, file: MigrationFile | undefined): void {
  if (!finished) {
    throw new MigrationRefused(
      `The migration "${name}" failed half-way in this database. Repair it, then mark it with "prisma migrate resolve".`,
    );
  }
  if (file !== undefined && file.checksum !== checksum) {
    throw new MigrationRefused(
      `The migration "${name}" was edited after it had been applied. Restore its migration.sql, and put the change ` +
        'into a new migration.',
    );
  }
}

function refuseUnlessCompatible(
  unknown: readonly string[],
  oldestCode: ReadonlyMap<string, string>,
  version: string,
): void {
  const refusals = unknown.flatMap((name) => {
    const oldest = oldestCode.get(name);
    if (oldest === undefined) {
      return [
        `The database has the migration "${name}", which this version does not know, and it does not say who can run ` +
          'on it. Deploy a version that has it.',
      ];
    }
    if (isAtLeast(version, oldest)) return [];
    return [`The migration "${name}" of this database excludes this version (${version}): deploy at least ${oldest}.`];
  });
  if (refusals.length > 0) throw new MigrationRefused(refusals.join('\n'));
}
