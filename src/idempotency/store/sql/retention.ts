import { QUICKLY } from './fragments';
import { tableOf } from './days';

/** Takes the maintenance lease if it is free. $1 token, $2 instance, $3 lease ms */
export const ELECT = `
UPDATE idempotency_maintenance
SET owner_token = $1::uuid, instance = $2::text, held_until = now() + $3::float8 * interval '1 millisecond'
WHERE held_until <= now()
RETURNING true AS elected`;

/** Prolongs the maintenance lease unless somebody else took it. $1 token, $2 lease ms */
export const RENEW_IF_ELECTED = `
UPDATE idempotency_maintenance
SET held_until = now() + $2::float8 * interval '1 millisecond'
WHERE owner_token = $1::uuid
RETURNING true AS elected`;

/** Gives the maintenance lease back. $1 token */
export const RESIGN_IF_ELECTED = `
UPDATE idempotency_maintenance SET held_until = now() WHERE owner_token = $1::uuid`;

/** How long a statement of this session waits for a lock; `0` is for ever. */
export const SELECT_PATIENCE = `SELECT current_setting('lock_timeout') AS patience`;

/**
 * Forgets the days whose keys no method takes any more and whose records no method promised to keep, for ever: from its
 * commit on, no claim of such a key is inserted. The longest promise of all methods that the database knows counts, and
 * the database clock; with no method there is nothing to go by. It never goes back: the row's own lock makes one of two
 * that move it at once wait, and look again.
 */
export const MOVE_DROPPED_THROUGH = `
UPDATE idempotency_retention AS retention
SET dropped_through = due.day
FROM (
  SELECT (
    (now() - max(max_key_age_ms + retention_ms) * interval '1 millisecond') AT TIME ZONE 'UTC'
  )::date - 1 AS day
  FROM idempotency_method
) AS due
WHERE due.day > retention.dropped_through
RETURNING to_char(retention.dropped_through, 'YYYY-MM-DD') AS day`;

/**
 * The tables of forgotten days, oldest first, and how far each has gone: attached, detaching (a DETACH was cut off or
 * still runs), detached. $1 one day alone, or NULL
 */
export const SELECT_DAYS_TO_DROP = `
SELECT day, stage
FROM idempotency_retention AS retention, (
  SELECT regexp_replace(relname, '^.*(\\d{4})(\\d{2})(\\d{2})$', '\\1-\\2-\\3') AS day,
    CASE WHEN inhrelid IS NULL THEN 'detached' WHEN inhdetachpending THEN 'detaching' ELSE 'attached' END AS stage
  FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
  WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'idempotency_record'::regclass)
    AND relkind = 'r' AND relname ~ '^idempotency_record_d\\d{8}$'
) AS day_table
WHERE day <= to_char(retention.dropped_through, 'YYYY-MM-DD')
  AND ($1::text IS NULL OR day = $1::text)
ORDER BY day`;

/**
 * Whether an attempt still runs in a day. It reads the whole table where none does: an index over the state would cost
 * every completion its HOT update, and a read keeps nobody waiting.
 *
 * @param day `YYYY-MM-DD`
 */
export function selectIsRunning(day: string): string {
  return `
SELECT EXISTS (SELECT FROM ${tableOf(day)} WHERE state = 'claimed' AND lease_until > now()) AS running`;
}

/**
 * Takes a day out of the records without keeping anybody waiting. Can't run in a transaction. Cut off, it leaves the day
 * `detaching`: out of sight of new statements, to be finished by `finalizeDetach`.
 *
 * @param day `YYYY-MM-DD`
 */
export function detachDay(day: string): string {
  return `ALTER TABLE idempotency_record DETACH PARTITION ${tableOf(day)} CONCURRENTLY`;
}

/** @param day `YYYY-MM-DD` */
export function finalizeDetach(day: string): string {
  return `ALTER TABLE idempotency_record DETACH PARTITION ${tableOf(day)} FINALIZE`;
}

/**
 * Waits for the last who still use a table, and keeps out who comes late. It takes no snapshot: the first
 * statement after it sees what they wrote, at any isolation level.
 *
 * @param day `YYYY-MM-DD`
 */
export function lockDay(day: string): string {
  return `LOCK TABLE ${tableOf(day)} IN ACCESS EXCLUSIVE MODE`;
}

/**
 * Copies what must not go with its day: parked records, and those of attempts that died past a recovery point, where
 * somebody may have been charged.
 *
 * @param day `YYYY-MM-DD`
 */
export function keepUnfinished(day: string): string {
  return `
INSERT INTO idempotency_record_kept
SELECT now(), record.*
FROM ${tableOf(day)} AS record
WHERE state = 'parked' OR (state = 'claimed' AND recovery_point IS NOT NULL)
RETURNING true AS kept`;
}

/** @param day `YYYY-MM-DD` */
export function dropDay(day: string): string {
  return `DROP TABLE ${tableOf(day)}`;
}

/** All methods that ever took keys. */
export const SELECT_METHODS_TO_PURGE = `SELECT id, path FROM idempotency_method ORDER BY id`;

/**
 * Deletes undated records of a method whose retention is over, oldest first and few at a time. Never what runs, is
 * parked or half done. It waits for nobody, so it can't deadlock with callers; what somebody has in hand is left for the
 * next round. It goes on where the last batch ended, since reading past all that was just deleted would get slower with
 * every batch. It need not reach the disk: what a crash brings back is deleted again.
 *
 * $1 method, $2 created at or after, $3 how many
 */
export const PURGE_UNDATED = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}),
due AS MATERIALIZED (
  SELECT id, created_at
  FROM idempotency_record_undated
  WHERE method = $1::smallint
    AND created_at >= $2::timestamptz
    AND created_at <= now() - (SELECT retention_ms FROM idempotency_method WHERE id = $1::smallint)
      * interval '1 millisecond'
    AND state <> 'parked'
    AND NOT (state = 'claimed' AND lease_until > now())
    AND NOT (state = 'claimed' AND recovery_point IS NOT NULL)
  ORDER BY created_at
  LIMIT $3::int
  FOR UPDATE SKIP LOCKED
),
gone AS (
  DELETE FROM idempotency_record_undated
  WHERE bucket = '1970-01-01' AND id = ANY (ARRAY(SELECT id FROM due))
)
SELECT count(id)::int AS "count", max(created_at)::text AS "through" FROM setting LEFT JOIN due ON true`;

/** How many tables hold records. */
export const COUNT_PARTITIONS = `
SELECT count(*)::int AS "count" FROM pg_inherits WHERE inhparent = 'idempotency_record'::regclass`;

/**
 * How many percent of the records make up so many pages of 8 KiB. $1 pages
 */
export const SELECT_SAMPLE_PERCENT = `
SELECT least(100, 100 * $1::float8 / greatest(1, sum(pg_relation_size(inhrelid)) / 8192))::float8 AS "percent"
FROM pg_inherits WHERE inhparent = 'idempotency_record'::regclass`;

/** Counts the records by their state in a sample of the pages; all of them at 100. $1 percent */
export const COUNT_SAMPLE = `
SELECT state, count(*)::float8 AS "count",
  greatest(0, extract(epoch FROM now() - min(created_at)) * 1000)::float8 AS "oldestAgeMs"
FROM idempotency_record TABLESAMPLE SYSTEM ($1::real)
GROUP BY state`;

/** How many records outlived their day. */
export const COUNT_KEPT = `SELECT count(*)::int AS "count" FROM idempotency_record_kept`;
