import { CREATED_AT_MS, DROPPED, FROM_FUTURE, PATIENCE, QUICKLY, TOO_OLD } from './fragments';

/**
 * Inserts the claim of a key that has no record. No row comes back where there is one, or where the key's date forbids
 * it. NOT EXISTS stands first because DO NOTHING alone would wait for an uncommitted completion of an existing row.
 *
 * $1 bucket, $2 id, $3 dated at, $4 max key age ms, $5 lease ms, $6 method, $7 owner token, $8 fingerprint, $9 scope,
 * $10 request id, $11 instance, $12 the request itself, or NULL
 */
export const INSERT_CLAIM = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}, ${PATIENCE})
INSERT INTO idempotency_record
  (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id, instance,
    request)
SELECT now(), now() + $5::float8 * interval '1 millisecond', $1::date, 1, $6::smallint, $2::uuid, $7::uuid, 'claimed',
  $8::bytea, $9::text, $10::text, $11::text, $12::bytea
FROM setting
WHERE NOT EXISTS (SELECT FROM idempotency_record WHERE bucket = $1::date AND id = $2::uuid)
  AND ($3::float8 IS NULL OR NOT (${TOO_OLD} OR ${FROM_FUTURE} OR ${DROPPED}))
ON CONFLICT (bucket, id) DO NOTHING
RETURNING ${CREATED_AT_MS}`;

/**
 * The same for many keys, in the order of the primary key: unsorted, two processes would deadlock. A scalar subquery and
 * not NOT EXISTS, since that would become a join that may read whole tables.
 *
 * $1 JSON: bucket, id, datedAtMs, maxKeyAgeMs, leaseMs, method, token, fingerprint (hex), scope, requestId, instance,
 * request (base64, or nothing)
 */
export const INSERT_CLAIMS = `
WITH setting AS MATERIALIZED (SELECT ${QUICKLY}, ${PATIENCE})
INSERT INTO idempotency_record
  (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id, instance,
    request)
SELECT now(), now() + claim."leaseMs" * interval '1 millisecond', claim.bucket, 1, claim.method, claim.id, claim.token,
  'claimed', decode(claim.fingerprint, 'hex'), claim.scope, claim."requestId", claim.instance,
  decode(claim.request, 'base64')
FROM setting, jsonb_to_recordset($1::jsonb) AS claim(
  bucket date, id uuid, "datedAtMs" float8, "maxKeyAgeMs" float8, "leaseMs" float8, method smallint, token uuid,
  fingerprint text, scope text, "requestId" text, instance text,
  request text
)
WHERE (SELECT true FROM idempotency_record WHERE bucket = claim.bucket AND id = claim.id) IS NULL
  AND (claim."datedAtMs" IS NULL OR NOT (
    to_timestamp(claim."datedAtMs" / 1000) < now() - claim."maxKeyAgeMs" * interval '1 millisecond'
    OR to_timestamp(claim."datedAtMs" / 1000) > now() + interval '5 minutes'
    OR claim.bucket <= (SELECT dropped_through FROM idempotency_retention)
  ))
ORDER BY claim.bucket, claim.id
ON CONFLICT (bucket, id) DO NOTHING
RETURNING owner_token::text AS "token", ${CREATED_AT_MS}`;

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
RETURNING record.attempt, record.results, record.resource, ${CREATED_AT_MS}`;
