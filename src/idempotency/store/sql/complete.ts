import { DURABLY } from './fragments';

/**
 * The fence: records the answer if the claim is still held. Last statement of the business transaction. It makes that
 * transaction durable whatever the session's default, and keeps a frozen process from holding the row for ever.
 *
 * $1 bucket, $2 id, $3 owner token, $4 status code, $5 status message, $6 response, $7 trailers, $8 idle limit ms,
 * $9 resource, $10 whether the answer is kept
 */
export const COMPLETE_IF_HELD = `
WITH setting AS MATERIALIZED (
  SELECT
    ${DURABLY},
    set_config('idle_in_transaction_session_timeout', $8::text, true)
)
UPDATE idempotency_record AS record
SET state = 'completed', completed_at = statement_timestamp(), status_code = $4::smallint, status_message = $5::text,
  response = $6::bytea, trailers = $7::bytea, resource = $9::text, answer_kept = $10::boolean, results = NULL,
  request = NULL
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
RETURNING record.attempt`;

/** Fails in a transaction that Postgres has aborted, and is nothing else. */
export const ASSERT_NOT_ABORTED = `SELECT 1 AS alive`;
