/**
 * Every statement on a caller's intents. Time is the database's, one value per statement. A setting is made for one
 * statement by a CTE that the statement reads from, since an unread one is never run.
 */

/**
 * A key that a crash of the database forgets would be made anew after it was sent, so the commit reaches the disk
 * whatever the session's default; and nobody waits long behind a row that somebody else has in hand.
 */
const SETTING = `
setting AS MATERIALIZED (
  SELECT
    set_config('synchronous_commit',
      CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
    set_config('lock_timeout', '2s', true)
)`;

const IS_SUBJECT = `producer = $1::text AND intent = $2::text AND draft_id = $3::text`;

/** As a number: a driver may read a timestamp in another time zone than the session that wrote it. */
const EXPIRES_AT_MS = `(extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAtMs"`;

/** A row of `FIND_INTENT`. */
export interface IntentRow {
  readonly requestId: string;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
  readonly expired: boolean;
  readonly finished: boolean;
  /** The statement ran in a transaction that has written: the row may not be committed. */
  readonly inTransaction: boolean;
}

/**
 * Makes the key of an intent that has none. The database dates it: a process whose clock is wrong would make keys that
 * servers refuse, and keep them. A random UUID gives all other bits.
 *
 * $1 producer, $2 intent, $3 draft id, $4 expires after ms, $5 random UUID
 */
export const INSERT_INTENT_IF_ABSENT = `
WITH ${SETTING},
moment AS MATERIALIZED (SELECT date_trunc('milliseconds', now()) AS at FROM setting)
INSERT INTO idempotency_intent (created_at, expires_at, request_id, producer, intent, draft_id)
SELECT at, at + $4::float8 * interval '1 millisecond',
  (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || right(replace($5::text, '-', ''), 19))::uuid,
  $1::text, $2::text, $3::text
FROM moment
WHERE NOT EXISTS (SELECT FROM idempotency_intent WHERE ${IS_SUBJECT})
ON CONFLICT (producer, intent, draft_id) DO NOTHING`;

/**
 * Reads the key of an intent. By itself this statement is given no transaction id, so one that is there belongs to a
 * transaction around it. $1 producer, $2 intent, $3 draft id
 */
export const FIND_INTENT = `
SELECT request_id::text AS "requestId", ${EXPIRES_AT_MS}, expires_at <= now() AS expired,
  finished_at IS NOT NULL AS finished, pg_current_xact_id_if_assigned() IS NOT NULL AS "inTransaction"
FROM idempotency_intent
WHERE ${IS_SUBJECT}`;

/** Marks an intent as answered, once. $1 producer, $2 intent, $3 draft id, $4 request id */
export const FINISH_IF_KEY = `
UPDATE idempotency_intent
SET finished_at = coalesce(finished_at, now())
WHERE ${IS_SUBJECT} AND request_id = $4::uuid
RETURNING 1 AS one`;

/** Removes an intent whose key is the one that was seen. $1 producer, $2 intent, $3 draft id, $4 request id */
export const FORGET_IF_KEY = `
DELETE FROM idempotency_intent
WHERE ${IS_SUBJECT} AND request_id = $4::uuid
RETURNING 1 AS one`;

/** Expired intents that nobody has finished, the oldest first. $1 producer, $2 most rows */
export const SELECT_UNRESOLVED = `
SELECT intent, draft_id AS "draftId", request_id::text AS "requestId", ${EXPIRES_AT_MS}
FROM idempotency_intent
WHERE producer = $1::text AND finished_at IS NULL AND expires_at <= now()
ORDER BY expires_at
LIMIT $2::int`;

/**
 * Removes one batch of intents that were finished long ago, and counts it. What somebody else has in hand waits for the
 * next time. $1 producer, $2 keep finished ms, $3 most rows
 */
export const PURGE_FINISHED = `
WITH old AS MATERIALIZED (
  SELECT intent, draft_id FROM idempotency_intent
  WHERE producer = $1::text AND finished_at < now() - $2::float8 * interval '1 millisecond' AND expires_at <= now()
  ORDER BY finished_at
  LIMIT $3::int
  FOR UPDATE SKIP LOCKED
),
gone AS (
  DELETE FROM idempotency_intent AS intents
  USING old
  WHERE intents.producer = $1::text AND intents.intent = old.intent AND intents.draft_id = old.draft_id
  RETURNING 1
)
SELECT count(*)::int AS purged FROM gone`;
