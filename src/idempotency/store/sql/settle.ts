import { DURABLY } from './fragments';

/**
 * Takes the token of an attempt away from itself, after a commit whose outcome nobody knows. It waits for whatever the
 * server still does with the row: one row means that the completion never happened and never will; whether a step did is
 * told by the recovery point.
 *
 * $1 bucket, $2 id, $3 owner token, $4 new token, $5 lock timeout ms
 */
export const TAKE_TOKEN_AWAY_IF_HELD = `
WITH setting AS MATERIALIZED (SELECT set_config('lock_timeout', $5::text, true))
UPDATE idempotency_record AS record
SET owner_token = $4::uuid
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
RETURNING record.recovery_point AS "recoveryPoint"`;

/**
 * A write behind a completion that was only seen: when its own commit has reached the disk, and the replicas that a
 * commit waits for, then so has the completion before it in the log.
 *
 * $1 bucket, $2 id, $3 owner token
 */
export const CONFIRM_COMPLETION = `
WITH setting AS MATERIALIZED (
  SELECT ${DURABLY}
)
UPDATE idempotency_record AS record
SET attempt = record.attempt
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'completed'
RETURNING record.attempt`;
