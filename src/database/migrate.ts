import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Client } from 'pg';
import { version } from '../version';
import { findMissing } from './applied-migrations';
import { type MigrationFile, readMigrationFiles } from './migration-files';
import { MigrationRefused } from './migration-refused';
import { packageRoot } from './package-root';

export { MigrationRefused };

/** How long an unreachable database is waited for, milliseconds. */
const CONNECTION_TIMEOUT_MS = 5_000;

/** Any fixed number: whoever migrates this package's tables takes this advisory lock. */
const MIGRATION_LOCK = 7_283_645_019;

/** The table that `prisma migrate` keeps, column for column, so that either may come after the other. */
const CREATE_MIGRATIONS_TABLE = `
  CREATE TABLE IF NOT EXISTS _prisma_migrations (
    id                  VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum            VARCHAR(64) NOT NULL,
    finished_at         TIMESTAMPTZ,
    migration_name      VARCHAR(255) NOT NULL,
    logs                TEXT,
    rolled_back_at      TIMESTAMPTZ,
    started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count INTEGER NOT NULL DEFAULT 0
  )`;

/** What to migrate, or to check. */
export interface MigrateOptions {
  /** The database. It must be the primary. */
  readonly connectionString: string;
  /** Holds one directory per migration. Default: `prisma/migrations` of this package. */
  readonly directory?: string;
  /** The version of the code that will run on the schema. Default: that of this package. */
  readonly codeVersion?: string;
}

/**
 * Brings the database to the newest migration and returns the names of those that were applied now, in order.
 *
 * Safe to call from any number of processes at once: each migration runs in a transaction that first takes an advisory
 * lock, then looks which one is next, and records it together with its effects. The lock is the transaction's and not
 * the session's: it goes with the COMMIT or with the connection, whatever becomes of this process, and it also works
 * through a pooler that shares sessions.
 *
 * @throws MigrationRefused when the node is read-only, when an applied migration was edited or failed half-way under
 *   another tool, or when one that is unknown here does not say that this version can run on it; nothing is changed then
 * @throws Error of the driver when the database can't be reached, or a statement fails; that migration is rolled back
 */
export async function migrate(options: MigrateOptions): Promise<readonly string[]> {
  return withMigrations(options, async (client, files, codeVersion) => {
    const applied: string[] = [];
    for (;;) {
      const name = await inTransaction(client, () => applyNext(client, files, codeVersion));
      if (name === undefined) return applied;
      applied.push(name);
    }
  });
}

/**
 * Returns the names of the migrations that the database has not, in order. Changes nothing and waits for nobody.
 *
 * @throws MigrationRefused as `migrate` does
 * @throws Error of the driver when the database can't be reached
 */
export async function missingMigrations(options: MigrateOptions): Promise<readonly string[]> {
  return withMigrations(options, async (client, files, codeVersion) => {
    const missing = await inTransaction(client, () => findMissing(client, files, codeVersion));
    return missing.map(({ name }) => name);
  });
}

async function withMigrations<Result>(
  { connectionString, directory, codeVersion = version }: MigrateOptions,
  work: (client: Client, files: readonly MigrationFile[], codeVersion: string) => Promise<Result>,
): Promise<Result> {
  const files = await readMigrationFiles(directory ?? join(packageRoot(), 'prisma', 'migrations'));
  const client = new Client({
    connectionString,
    connectionTimeoutMillis: CONNECTION_TIMEOUT_MS,
    application_name: 'grpc-idempotency migrate',
  });
  // A lost connection also rejects the statement that runs; without a listener it would end the process as well.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client, files, codeVersion);
  } finally {
    await client.end();
  }
}

/** Refuses a read-only node first, whatever is to be done: the service would not work there either. */
async function inTransaction<Result>(client: Client, work: () => Promise<Result>): Promise<Result> {
  // What is missing is to be seen as it is behind the lock, whatever the default of the database.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await refuseReadOnly(client);
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // The first error is the one that explains; with the connection gone the server rolls back by itself.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** Applies the first migration that is not applied yet; undefined when there is none. */
async function applyNext(
  client: Client,
  files: readonly MigrationFile[],
  codeVersion: string,
): Promise<string | undefined> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  await client.query(CREATE_MIGRATIONS_TABLE);
  const [next] = await findMissing(client, files, codeVersion);
  if (next === undefined) return undefined;
  await client.query(next.sql);
  await client.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, now(), clock_timestamp(), 1)`,
    [randomUUID(), next.checksum, next.name],
  );
  return next.name;
}

async function refuseReadOnly(client: Client): Promise<void> {
  const { rows } = await client.query<{ readonly: boolean; standby: boolean }>(
    `SELECT current_setting('transaction_read_only') = 'on' AS readonly, pg_is_in_recovery() AS standby`,
  );
  if (rows[0]?.readonly !== true) return;
  const cause = rows[0].standby ? 'it is a standby' : 'default_transaction_read_only is on';
  throw new MigrationRefused(
    `The database at ${client.host}:${client.port} is read-only (${cause}). Everything here runs on the primary: ` +
      'point DATABASE_URL at it.',
  );
}
