/**
 * Every statement on the records. Constant texts with numbered parameters; only the name of a day's table, which can't be
 * one, is spliced in, and checked.
 *
 * Rules they share: time is the database's, one value per statement; the primary key (bucket, id) is always given, so
 * each touches one partition; ownership is in the WHERE. A setting is made for one statement or transaction by a CTE
 * that the statement reads from, since an unread one is never run.
 */

/** What a claim, a takeover and a look-up know of a key's date: $3 its time in epoch milliseconds, or NULL. */
const DATED_AT = `to_timestamp($3::float8 / 1000)`;
const TOO_OLD = `${DATED_AT} < now() - $4::float8 * interval '1 millisecond'`;
const FROM_FUTURE = `${DATED_AT} > now() + interval '5 minutes'`;
const DROPPED = `$1::date <= (SELECT dropped_through FROM idempotency_retention)`;
/** Without a record, such a key is never run again. */
const IS_TOO_OLD = `$3::float8 IS NOT NULL AND (${TOO_OLD} OR ${DROPPED}) AS "tooOld"`;
/** Always one row, whose columns are NULL where there is no record. $1 bucket, $2 id */
const RECORD_OR_NOTHING = `
FROM (SELECT) AS always
LEFT JOIN idempotency_record AS record ON record.bucket = $1::date AND record.id = $2::uuid`;

/**
 * A claim need not reach the disk before it is told: its completion, which does, comes after it in the log. A claim that
 * a crash of the database loses leaves a stale owner, whom the fence refuses.
 */
const QUICKLY = `set_config('synchronous_commit', 'off', true)`;
/** Nobody waits long behind a completer that was frozen with the row in its hands. */
const PATIENCE = `set_config('lock_timeout', '2s', true)`;

/** As a number: a driver may read a timestamp in another time zone than the session that wrote it. */
const CREATED_AT_MS = `(extract(epoch FROM created_at) * 1000)::float8 AS "createdAtMs"`;

/**
 * Inserts the claim of a key that has no record. No row comes back where there is one, or where the key's date forbids
 * it. NOT EXISTS stands first because DO NOTHING alone would wait for an uncommitted completion of an existing row.
 *
 * $1 bucket, $2 id, $3 dated at, $4 max key age ms, $5 lease ms, $6 method, $7 owner token, $8 fingerprint, $9 scope,
 * $10 request id, $11 instance
 */
export const INSERT_CLAIM = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}, ${PATIENCE})
INSERT INTO idempotency_record
  (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id, instance)
SELECT now(), now() + $5::float8 * interval '1 millisecond', $1::date, 1, $6::smallint, $2::uuid, $7::uuid, 'claimed',
  $8::bytea, $9::text, $10::text, $11::text
FROM setting
WHERE NOT EXISTS (SELECT FROM idempotency_record WHERE bucket = $1::date AND id = $2::uuid)
  AND ($3::float8 IS NULL OR NOT (${TOO_OLD} OR ${FROM_FUTURE} OR ${DROPPED}))
ON CONFLICT (bucket, id) DO NOTHING
RETURNING ${CREATED_AT_MS}`;

/**
 * Reads a record, or, where there is none, what the key's date says. Always one row.
 *
 * $1 bucket, $2 id, $3 dated at, $4 max key age ms
 */
export const LOOK_UP = `
SELECT record.state, record.method, record.scope, record.request_id AS "requestId", record.fingerprint,
  record.owner_token::text AS "ownerToken", record.attempt, ${CREATED_AT_MS},
  greatest(0, extract(epoch FROM record.lease_until - now()) * 1000)::float8 AS "leaseLeftMs",
  record.status_code AS "statusCode", record.status_message AS "statusMessage", record.response,
  record.trailers, record.resource, ${IS_TOO_OLD},
  $3::float8 IS NOT NULL AND ${FROM_FUTURE} AS "fromFuture"${RECORD_OR_NOTHING}`;

/**
 * Reads where a request stands, for somebody who shows only its key: everything of a record that can be told without a
 * look at the request itself, so neither the answer nor its trailers. Always one row.
 *
 * $1 bucket, $2 id, $3 dated at, $4 max key age ms
 */
export const LOOK_UP_STATUS = `
SELECT record.state, record.method, record.scope, record.request_id AS "requestId", ${CREATED_AT_MS},
  (extract(epoch FROM record.completed_at) * 1000)::float8 AS "completedAtMs",
  record.status_code AS "statusCode", record.status_message AS "statusMessage", record.resource,
  ${IS_TOO_OLD}${RECORD_OR_NOTHING}`;

/**
 * Takes over a claim whose lease is over, from the owner that was seen and no other. Without the state, it would take a
 * completed record and run it again. It waits for nobody: duplicates of one key behind a slow completer would hold all
 * connections of the store, and every other key would wait with them.
 *
 * $1 bucket, $2 id, $3 token seen, $4 new token, $5 lease ms, $6 instance
 */
export const TAKE_OVER_IF_EXPIRED = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}, ${PATIENCE}),
free AS MATERIALIZED (
  SELECT 1 FROM idempotency_record WHERE bucket = $1::date AND id = $2::uuid FOR UPDATE SKIP LOCKED
)
UPDATE idempotency_record AS record
SET owner_token = $4::uuid, attempt = record.attempt + 1, instance = $6::text,
  lease_until = now() + $5::float8 * interval '1 millisecond'
FROM setting, free
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
  AND record.lease_until <= now()
RETURNING record.attempt, ${CREATED_AT_MS}`;

/**
 * The fence: records the answer if the claim is still held. Last statement of the business transaction. It makes that
 * transaction durable whatever the session's default, and keeps a frozen process from holding the row for ever.
 *
 * $1 bucket, $2 id, $3 owner token, $4 status code, $5 status message, $6 response, $7 trailers, $8 idle limit ms,
 * $9 resource
 */
export const COMPLETE_IF_HELD = `
WITH setting AS MATERIALIZED (
  SELECT
    set_config('synchronous_commit',
      CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
    set_config('idle_in_transaction_session_timeout', $8::text, true)
)
UPDATE idempotency_record AS record
SET state = 'completed', completed_at = statement_timestamp(), status_code = $4::smallint, status_message = $5::text,
  response = $6::bytea, trailers = $7::bytea, resource = $9::text
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
RETURNING record.attempt`;

/** Gives a key back. $1 bucket, $2 id, $3 owner token */
export const RELEASE_IF_HELD = `
WITH setting AS MATERIALIZED (SELECT ${PATIENCE})
DELETE FROM idempotency_record AS record
USING setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
RETURNING record.attempt`;

/** Fails in a transaction that Postgres has aborted, and is nothing else. */
export const ASSERT_NOT_ABORTED = `SELECT 1 AS alive`;

/** Registers a method. $1 path, $2 retention ms, $3 max key age ms */
export const INSERT_METHOD = `
INSERT INTO idempotency_method (path, retention_ms, max_key_age_ms)
SELECT $1::text, $2::bigint, $3::bigint
WHERE NOT EXISTS (SELECT FROM idempotency_method WHERE path = $1::text)
ON CONFLICT (path) DO NOTHING`;

/** Lengthens what a method promises, never shortens it. $1 path, $2 retention ms, $3 max key age ms */
export const LENGTHEN_METHOD = `
UPDATE idempotency_method
SET retention_ms = greatest(retention_ms, $2::bigint), max_key_age_ms = greatest(max_key_age_ms, $3::bigint)
WHERE path = $1::text AND (retention_ms < $2::bigint OR max_key_age_ms < $3::bigint)`;

/** All methods that were ever registered. */
export const SELECT_METHODS = `SELECT id, path FROM idempotency_method`;

/**
 * Waits for another process that is making days, and sets how long this transaction waits for anything. The lock only
 * keeps two processes from making the same day at once, which would fail one of them; nothing depends on it.
 */
export const CREATE_DAY_LOCK = `
SELECT set_config('lock_timeout', '4s', true), pg_advisory_xact_lock(hashtext('idempotency_record days'))::text`;

/** The days that are missing, as `YYYY-MM-DD`; whole days, so that the last one is among them. $1 how many days ahead */
export const SELECT_DAYS_TO_CREATE = `
SELECT to_char(day, 'YYYY-MM-DD') AS day
FROM idempotency_retention AS retention,
  generate_series(
    date_trunc('day', (
      now() - (SELECT coalesce(max(max_key_age_ms), 0) FROM idempotency_method) * interval '1 millisecond'
    ) AT TIME ZONE 'UTC'),
    (now() AT TIME ZONE 'UTC') + $1::int * interval '1 day',
    interval '1 day'
  ) AS day
WHERE to_regclass('idempotency_record_d' || to_char(day, 'YYYYMMDD')) IS NULL
  AND day::date > retention.dropped_through
ORDER BY day`;

/** @param day `YYYY-MM-DD` */
export function createDay(day: string): string {
  return `CREATE TABLE ${tableOf(day)} (LIKE idempotency_record INCLUDING ALL) WITH (fillfactor = 50)`;
}

/** @param day `YYYY-MM-DD` */
export function attachDay(day: string): string {
  const from = `'${day}'::date`;
  return `ALTER TABLE idempotency_record ATTACH PARTITION ${tableOf(day)} FOR VALUES FROM (${from}) TO (${from} + 1)`;
}

function tableOf(day: string): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) throw new TypeError(`not a day: ${day}`);
  return `idempotency_record_d${day.replaceAll('-', '')}`;
}
