import { DURABLY, PATIENCE } from './fragments';

/** What an operator is shown of a record. Of its answer and results nothing is ever printed. */
const SEEN = `record.bucket::text AS "bucket", record.id::text AS "id", record.owner_token::text AS "ownerToken",
  record.state, method.path, record.scope, record.request_id AS "requestId", record.attempt, record.instance,
  record.resource, record.recovery_point AS "recoveryPoint", record.results, record.status_code AS "statusCode",
  record.answer_kept AS "answerKept", record.request IS NOT NULL AS "requestKept",
  (extract(epoch FROM record.created_at) * 1000)::float8 AS "createdAtMs",
  (extract(epoch FROM now() - record.created_at) * 1000)::float8 AS "ageMs",
  (extract(epoch FROM record.completed_at) * 1000)::float8 AS "completedAtMs",
  (extract(epoch FROM record.lease_until - now()) * 1000)::float8 AS "leaseLeftMs",
  method.retention_ms::float8 AS "retentionMs"`;

/**
 * Finds the records of a key whose scope and method nobody knows: their ids begin with the 48 bits that come from the key
 * alone, so they stand together in one day. Those that outlived their day are kept beside; both are read at one moment,
 * so that one which moves there is seen once.
 *
 * $1 bucket, $2 lowest id, $3 highest id, $4 request id
 */
export const FIND_BY_KEY = `
SELECT ${SEEN}, NULL::float8 AS "keptAtMs"
FROM idempotency_record AS record LEFT JOIN idempotency_method AS method ON method.id = record.method
WHERE record.bucket = $1::date AND record.id >= $2::uuid AND record.id <= $3::uuid
  AND record.request_id = $4::text
UNION ALL
SELECT ${SEEN}, (extract(epoch FROM record.kept_at) * 1000)::float8 AS "keptAtMs"
FROM idempotency_record_kept AS record LEFT JOIN idempotency_method AS method ON method.id = record.method
WHERE record.bucket = $1::date AND record.id >= $2::uuid AND record.id <= $3::uuid
  AND record.request_id = $4::text
ORDER BY "createdAtMs"`;

/**
 * What is parked, also what outlived its day so, the oldest first. It reads all records: no index knows what is parked.
 *
 * $1 how the path of the method ends, or NULL for all, $2 how many
 */
export const SELECT_PARKED = `
SELECT ${SEEN}, NULL::float8 AS "keptAtMs"
FROM idempotency_record AS record LEFT JOIN idempotency_method AS method ON method.id = record.method
WHERE record.state = 'parked'
  AND ($1::text IS NULL OR right(method.path, length($1::text)) = $1::text)
UNION ALL
SELECT ${SEEN}, (extract(epoch FROM record.kept_at) * 1000)::float8 AS "keptAtMs"
FROM idempotency_record_kept AS record LEFT JOIN idempotency_method AS method ON method.id = record.method
WHERE record.state = 'parked'
  AND ($1::text IS NULL OR right(method.path, length($1::text)) = $1::text)
ORDER BY "createdAtMs"
LIMIT $2::int`;

/**
 * What the date of a key without a record says, by the most generous method. Always one row.
 *
 * $1 bucket, $2 dated at, epoch milliseconds, or NULL
 */
export const JUDGE_DATE = `
SELECT $2::float8 IS NOT NULL AND $1::date <= (SELECT dropped_through FROM idempotency_retention) AS "dropped",
  coalesce(to_timestamp($2::float8 / 1000)
    < now() - (SELECT max(max_key_age_ms) FROM idempotency_method) * interval '1 millisecond', false) AS "tooOld"`;

/**
 * Frees a parked request: it is claimed again, without a lease, so that whoever asks next resumes it, and its attempts
 * are counted anew. Nothing of what it has done is forgotten.
 *
 * $1 bucket, $2 id, $3 token seen, $4 new token, $5 instance, $6 the attempt that stored the first step
 */
export const FREE_IF_PARKED = `
WITH setting AS MATERIALIZED (SELECT ${DURABLY}, ${PATIENCE})
UPDATE idempotency_record AS record
SET state = 'claimed', owner_token = $4::uuid, lease_until = now(), attempt = $6::integer, instance = $5::text
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'parked'
RETURNING true AS "done"`;

/**
 * Takes a claim from the owner that was seen: the lease ends and the token goes with it, so that neither a late renewal
 * nor a late completion of that owner counts. A lease that runs is left alone unless that is asked for. The record stays:
 * somebody may have been charged.
 *
 * $1 bucket, $2 id, $3 token seen, $4 new token, $5 instance, $6 the attempt that stored the first step, $7 whether a lease
 * that runs is ended
 */
export const TAKE_CLAIM_AWAY = `
WITH setting AS MATERIALIZED (SELECT ${DURABLY}, ${PATIENCE})
UPDATE idempotency_record AS record
SET owner_token = $4::uuid, lease_until = now(), attempt = $6::integer, instance = $5::text
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
  AND ($7::boolean OR record.lease_until <= now())
RETURNING true AS "done"`;

/**
 * Makes a tombstone of a completed record: its answer goes, its key stays used. The token seen tells the completion that
 * was looked at from a later one of an undated key.
 *
 * $1 bucket, $2 id, $3 token seen, $4 instance
 */
export const EXPIRE_IF_COMPLETED = `
WITH setting AS MATERIALIZED (SELECT ${DURABLY}, ${PATIENCE})
UPDATE idempotency_record AS record
SET state = 'expired', response = NULL, trailers = NULL, status_message = NULL, answer_kept = false, results = NULL,
  request = NULL, instance = $4::text
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'completed'
RETURNING true AS "done"`;

/**
 * Records a refusal as the answer of an unfinished request that nobody runs, in the transaction that undoes what it had
 * begun. Its token is new: the last owner, who may still be asking what became of its own commit, must not take this
 * answer for that.
 *
 * $1 bucket, $2 id, $3 token seen, $4 new token, $5 status code, $6 status message, $7 trailers, $8 instance
 */
export const REFUSE_IF_UNFINISHED = `
WITH setting AS MATERIALIZED (SELECT ${DURABLY}, ${PATIENCE})
UPDATE idempotency_record AS record
SET state = 'completed', completed_at = statement_timestamp(), owner_token = $4::uuid, status_code = $5::smallint,
  status_message = $6::text, response = NULL, trailers = $7::bytea, answer_kept = true, results = NULL, request = NULL,
  instance = $8::text
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND (record.state = 'parked' OR (record.state = 'claimed' AND record.lease_until <= now()))
RETURNING true AS "done"`;
