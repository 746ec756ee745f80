import { PATIENCE, PAUSED_MARK, QUICKLY } from './fragments';

/**
 * Claims in the hands of this process. Who holds them is asked where their rows are locked, and once they are, it stays so
 * to the end of the statement. Every LIMIT here says how few rows there are and cuts off none: without it, a plan for
 * hundreds of rows reads the records of all days.
 *
 * $1 JSON: bucket, id, token; for a renewal leaseMs; for an end, leaseMs where nobody may take over for so long, and
 * unused: 1 for an attempt that ran nothing
 */
const HELD = `jsonb_to_recordset($1::jsonb) AS held(bucket date, id uuid, token uuid, "leaseMs" float8, unused integer)`;

/**
 * Prolongs the leases that are still held, all in one statement. Rows that somebody has in hand are left for the next
 * time: waiting for one would let the others run out. Returns the tokens of those that were prolonged.
 *
 * $1 see HELD
 */
export const RENEW_IF_HELD = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}),
free AS MATERIALIZED (
  SELECT held.bucket, held.id, held.token, held."leaseMs"
  FROM setting, ${HELD}, LATERAL (
    SELECT FROM idempotency_record AS record
    WHERE record.bucket = held.bucket AND record.id = held.id
      AND record.owner_token = held.token
      AND record.state = 'claimed'
    FOR UPDATE SKIP LOCKED
  ) AS locked
  LIMIT jsonb_array_length($1::jsonb)
)
UPDATE idempotency_record AS record
SET lease_until = now() + free."leaseMs" * interval '1 millisecond'
FROM free
WHERE record.bucket = free.bucket AND record.id = free.id
RETURNING record.owner_token::text AS "token"`;

/** The tokens among those given that still hold their claim. Waits for nobody. $1 see HELD */
export const SELECT_STILL_HELD = `
SELECT held.token::text AS "token"
FROM ${HELD}, LATERAL (
  SELECT FROM idempotency_record AS record
  WHERE record.bucket = held.bucket AND record.id = held.id
    AND record.owner_token = held.token
    AND record.state = 'claimed'
  LIMIT 1
) AS mine`;

/**
 * Ends leases at once, and takes the tokens away, so that no late renewal or completion of this process revives them.
 * Rows that are being completed just now are left to end as they will. An attempt that ran nothing is not counted, or
 * callers who hang up early would get a request parked. One that lets the request be for a while says so, for people.
 *
 * $1 see HELD
 */
export const END_LEASES_IF_HELD = `
WITH free AS MATERIALIZED (
  SELECT held.bucket, held.id, held.token, held."leaseMs", held.unused
  FROM ${HELD}, LATERAL (
    SELECT FROM idempotency_record AS record
    WHERE record.bucket = held.bucket AND record.id = held.id
      AND record.owner_token = held.token
      AND record.state = 'claimed'
    FOR UPDATE SKIP LOCKED
  ) AS locked
  LIMIT jsonb_array_length($1::jsonb)
)
UPDATE idempotency_record AS record
SET owner_token = gen_random_uuid(), lease_until = now() + coalesce(free."leaseMs", 0) * interval '1 millisecond',
  attempt = greatest(1, record.attempt - coalesce(free.unused, 0)),
  instance = record.instance || CASE WHEN free."leaseMs" > 0 THEN '${PAUSED_MARK}' ELSE '' END
FROM free
WHERE record.bucket = free.bucket AND record.id = free.id
RETURNING free.token::text AS "token"`;

/** Gives a key back, unless a step is recorded: then somebody may have been charged. $1 bucket, $2 id, $3 owner token */
export const RELEASE_IF_HELD = `
WITH setting AS MATERIALIZED (SELECT ${PATIENCE})
DELETE FROM idempotency_record AS record
USING setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
  AND record.recovery_point IS NULL
RETURNING record.attempt`;

/**
 * Says what a running request is about, for those who ask meanwhile.
 *
 * $1 bucket, $2 id, $3 owner token, $4 resource
 */
export const PUBLISH_IF_HELD = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}, ${PATIENCE})
UPDATE idempotency_record AS record
SET resource = $4::text
FROM setting
WHERE record.bucket = $1::date AND record.id = $2::uuid
  AND record.owner_token = $3::uuid
  AND record.state = 'claimed'
RETURNING record.attempt`;
