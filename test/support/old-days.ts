import { attachDay, createDay, tableOf } from '../../src/idempotency/store/sql/days';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from './claim-requests';
import type { TestDatabase } from './postgres';

export { tableOf };

const DAY_MS = 24 * 3_600_000;

/** A UTC day before (or after) today, by the database clock, as `YYYY-MM-DD`. */
export async function daysAgo(database: TestDatabase, days: number): Promise<string> {
  const [row] = await database.rows<{ day: string }>(
    `SELECT to_char((now() AT TIME ZONE 'UTC')::date - $1::int, 'YYYY-MM-DD') AS day`,
    [days],
  );
  return row?.day ?? '';
}

/** Makes the partition of a day, however long ago. */
export async function makeDay(database: TestDatabase, day: string): Promise<void> {
  await database.rows(createDay(day));
  await database.rows(attachDay(day));
}

/** A request whose key was made at noon of that day, and which is not too old for its policy. */
export function requestOf(day: string): ClaimRequest {
  const policy = policyOf('CreatePayment', { maxKeyAgeMs: 400 * DAY_MS });
  return claimRequest({ requestId: datedKey(Date.parse(day) + DAY_MS / 2), policy });
}

/** The days that have a table, and whether it is a partition: `attached`, `detaching`, `detached`. */
export async function stagesOf(database: TestDatabase): Promise<Readonly<Record<string, string>>> {
  const rows = await database.rows<{ day: string; stage: string }>(`
    SELECT regexp_replace(relname, '^.*d(\\d{4})(\\d{2})(\\d{2})$', '\\1-\\2-\\3') AS day,
      CASE WHEN inhrelid IS NULL THEN 'detached' WHEN inhdetachpending THEN 'detaching' ELSE 'attached' END AS stage
    FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
    WHERE relkind = 'r' AND relname ~ '^idempotency_record_d\\d{8}$' ORDER BY 1`);
  return Object.fromEntries(rows.map(({ day, stage }) => [day, stage]));
}

/** How far days have been forgotten, as `YYYY-MM-DD`. */
export async function droppedThrough(database: TestDatabase): Promise<string> {
  const [row] = await database.rows<{ day: string }>(
    `SELECT to_char(dropped_through, 'YYYY-MM-DD') AS day FROM idempotency_retention`,
  );
  return row?.day ?? '';
}
