/**
 * The statements on the records are in this folder and nowhere else. Constant texts with numbered parameters; only the
 * name of a day's table, which can't be one, is spliced in, and checked.
 *
 * Rules they share: time is the database's, one value per statement; the primary key (bucket, id) is always given, so
 * each touches one partition; ownership is in the WHERE. A setting is made for one statement or transaction by a CTE
 * that the statement reads from, since an unread one is never run.
 */

/** What a claim, a takeover and a look-up know of a key's date: $3 its time in epoch milliseconds, or NULL. */
export const DATED_AT = `to_timestamp($3::float8 / 1000)`;
export const TOO_OLD = `${DATED_AT} < now() - $4::float8 * interval '1 millisecond'`;
export const FROM_FUTURE = `${DATED_AT} > now() + interval '5 minutes'`;
export const DROPPED = `$1::date <= (SELECT dropped_through FROM idempotency_retention)`;
/** Without a record, such a key is never run again. */
export const IS_TOO_OLD = `$3::float8 IS NOT NULL AND (${TOO_OLD} OR ${DROPPED}) AS "tooOld"`;
/** Always one row, whose columns are NULL where there is no record. $1 bucket, $2 id */
export const RECORD_OR_NOTHING = `
FROM (SELECT) AS always
LEFT JOIN idempotency_record AS record ON record.bucket = $1::date AND record.id = $2::uuid`;

/**
 * A claim need not reach the disk before it is told: its completion, which does, comes after it in the log. A claim that
 * a crash of the database loses leaves a stale owner, whom the fence refuses.
 */
export const QUICKLY = `set_config('synchronous_commit', 'off', true)`;
/** What is acknowledged survives a crash, whatever the session's default; a stricter one than `on` stays. */
export const DURABLY = `set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`;
/** Nobody waits long behind a completer that was frozen with the row in its hands. */
export const PATIENCE = `set_config('lock_timeout', '2s', true)`;

/** Stands behind the instance of a request that an outage has paused: nobody runs it, though its lease is not over. */
export const PAUSED_MARK = ' (paused)';

/** As a number: a driver may read a timestamp in another time zone than the session that wrote it. */
export const CREATED_AT_MS = `(extract(epoch FROM created_at) * 1000)::float8 AS "createdAtMs"`;
