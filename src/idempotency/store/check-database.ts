import type { SqlClient } from './database';
import { CHECK_DATABASE } from './sql/check';

/** The database can't keep records. The message says why, and what to do. */
export class UnusableDatabaseError extends Error {
  override readonly name = 'UnusableDatabaseError';
}

/** The first version that detaches a partition without stopping everybody, and prunes them while an update runs. */
const OLDEST_MAJOR_VERSION = 14;

/**
 * Refuses a database that would fail later, at somebody's payment (design 4.6, 4.12): one that is too old, read-only, or
 * without the tables.
 *
 * @throws UnusableDatabaseError
 */
export async function checkDatabase(records: SqlClient): Promise<void> {
  const [found] =
    await records.$queryRawUnsafe<{ version: number; readOnly: boolean; standby: boolean; missing: string[] }[]>(
      CHECK_DATABASE,
    );
  if (found === undefined) throw new Error('a check of the database gave no row');
  const { version, readOnly, standby, missing } = found;
  const major = Math.floor(version / 10_000);
  if (major < OLDEST_MAJOR_VERSION) {
    throw new UnusableDatabaseError(`Postgres ${major} is too old: use version ${OLDEST_MAJOR_VERSION} or later.`);
  }
  if (readOnly) {
    const cause = standby ? 'it is a standby' : 'default_transaction_read_only is on';
    throw new UnusableDatabaseError(`The database is read-only (${cause}): connect to the primary.`);
  }
  if (missing.length > 0) {
    throw new UnusableDatabaseError(
      `Tables are missing in the database: ${missing.join(', ')}. Apply the migrations of grpc-idempotency, with ` +
        '"npx grpc-idempotency migrate", or look whether the search_path of this role leads to them.',
    );
  }
}
