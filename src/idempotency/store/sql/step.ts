import { fenced } from './fence';
import { DURABLY, PATIENCE } from './fragments';

/**
 * Records a phase, as the fence of its transaction: its results, the recovery point and what it has said the request is
 * about commit with what it wrote.
 *
 * $5 recovery point, $6 results, $7 resource, null to leave it as it is
 */
export const RECORD_STEP_IN_TRANSACTION_IF_HELD = fenced(`recovery_point = $5::text, results = $6::bytea,
    resource = coalesce($7::text, record.resource)`);

/**
 * The same by itself, before an effect is sent, durable whatever the session's default: from then on the key is never given back.
 *
 * $1 bucket, $2 id, $3 owner token, $4 recovery point, $5 results
 */
export const RECORD_STEP_IF_HELD = `
WITH setting AS MATERIALIZED (SELECT ${DURABLY}, ${PATIENCE})
UPDATE idempotency_record AS record
SET recovery_point = $4::text, results = $5::bytea
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
  AND (record.recovery_point IS NOT DISTINCT FROM $6::text OR record.recovery_point = $4::text)
RETURNING record.attempt`;

/**
 * Parks a half-finished request whose lease is over and which was tried too often, for a person. Its token is new, so that
 * the last attempt changes nothing any more.
 *
 * $1 bucket, $2 id, $3 token seen, $4 new token, $5 most attempts
 */
export const PARK_IF_EXHAUSTED = `
WITH setting AS MATERIALIZED (SELECT ${PATIENCE}),
free AS MATERIALIZED (
  SELECT 1 FROM idempotency_record WHERE bucket = $1::date AND id = $2::uuid FOR UPDATE SKIP LOCKED
)
UPDATE idempotency_record AS record
SET state = 'parked', owner_token = $4::uuid
FROM setting, free
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
  AND record.lease_until <= now()
  AND record.recovery_point IS NOT NULL
  AND record.attempt >= $5::integer
RETURNING record.attempt`;
