import { CREATED_AT_MS, FROM_FUTURE, IS_TOO_OLD, RECORD_OR_NOTHING } from './fragments';

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
  record.trailers, record.resource, record.answer_kept AS "answerKept",
  record.recovery_point AS "recoveryPoint", record.results,
  (extract(epoch FROM now() - record.created_at) * 1000)::float8 AS "ageMs", ${IS_TOO_OLD},
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
 * Those among the keys given whose attempt still runs. A key that is missing in the answer is worth a claim. LIMIT cuts
 * off nothing; it keeps the plan from reading the records of all days.
 *
 * $1 JSON: bucket, id
 */
export const SELECT_STILL_RUNNING = `
SELECT waiting.id::text AS "id"
FROM jsonb_to_recordset($1::jsonb) AS waiting(bucket date, id uuid), LATERAL (
  SELECT FROM idempotency_record AS record
  WHERE record.bucket = waiting.bucket AND record.id = waiting.id
    AND record.state = 'claimed'
    AND record.lease_until > now()
  LIMIT 1
) AS running`;
