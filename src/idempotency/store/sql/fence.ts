import { DURABLY } from './fragments';

/**
 * A statement that begins so is the last one of its transaction, and fails by itself where it must not count: a driver
 * adapter may keep it back and send it together with COMMIT, which saves a round trip. One that does not know the mark
 * sends it like any other.
 */
export const SENT_WITH_COMMIT = '/* sent with COMMIT */';

/** What the fence says, with the id of the record behind it, when it refuses. */
export const REFUSAL = 'claim is not held: ';

/** With 23514 what Postgres says, in any language, where the day of a record is gone; a CHECK names the day's own table. */
export const NO_DAY = /\bidempotency_record\b/;

/**
 * The fence: changes a record if its claim is still held, and otherwise fails, so that the whole transaction is rolled
 * back: with 22P02 and `REFUSAL` as the beginning of what can't be read as a boolean, or with 23514 where the record's
 * day is gone. It makes its transaction durable whatever the session's default, and keeps a frozen process from holding
 * the row for ever.
 *
 * It is an upsert because Postgres finds the day of an INSERT when it runs, and plans an UPDATE over all days every time.
 * What would be inserted where there is no record is nobody's, is told by its date, and never commits.
 *
 * Its own parameters are $1 bucket, $2 id, $3 owner token, $4 idle limit ms.
 *
 * @param change what is set, with parameters from $5 on
 */
export function fenced(change: string): string {
  return `${SENT_WITH_COMMIT}
WITH setting AS MATERIALIZED (
  SELECT
    ${DURABLY},
    set_config('idle_in_transaction_session_timeout', $4::text, true),
    '${REFUSAL}' || $2::text AS refusal
),
changed AS (
  INSERT INTO idempotency_record AS record (
    bucket, id, owner_token, created_at, lease_until, attempt, method, state, fingerprint, scope, request_id, instance
  )
  SELECT $1::date, $2::uuid, $3::uuid, 'epoch', 'epoch', 1, 0, 'claimed', decode('0000', 'hex'), 'nobody', 'no request has this', ''
  FROM setting
  ON CONFLICT (bucket, id) DO UPDATE
  SET ${change}
  WHERE record.owner_token = $3::uuid
    AND record.state = 'claimed'
  RETURNING record.created_at
)
SELECT CASE WHEN changed.created_at IS NULL THEN refusal::boolean ELSE true END AS held
FROM setting LEFT JOIN changed ON changed.created_at > 'epoch'`;
}
