/** Half-finished requests of methods, found among the open requests, of which there are few and an index. */
const HALF_FINISHED = `record.request IS NOT NULL
  AND record.method = ANY (ARRAY(SELECT value::smallint FROM jsonb_array_elements_text($1::jsonb)))
  AND record.state = 'claimed'
  AND record.recovery_point IS NOT NULL`;

/**
 * Half-finished requests of some methods whose lease has been over for a while: the longer, the more often they were tried.
 * Oldest first. It locks nothing; who takes one up asks again.
 *
 * $1 JSON: ids of methods, $2 shortest wait ms, $3 longest wait ms, $4 how many
 */
export const SELECT_HALF_FINISHED = `
SELECT record.method, record.scope, record.request_id AS "requestId", record.fingerprint, record.request AS "message"
FROM idempotency_record AS record
WHERE ${HALF_FINISHED}
  AND record.lease_until <= now()
    - least($3::float8, $2::float8 * 2 ^ least(record.attempt - 1, 30)) * interval '1 millisecond'
ORDER BY record.created_at
LIMIT $4::int`;

/**
 * How many half-finished requests of some methods have had no lease for so long.
 *
 * $1 JSON: ids of methods, $2 how long ms
 */
export const COUNT_STRANDED = `
SELECT method.path, count(*)::int AS "records"
FROM idempotency_record AS record JOIN idempotency_method AS method ON method.id = record.method
WHERE ${HALF_FINISHED}
  AND record.lease_until <= now() - $2::float8 * interval '1 millisecond'
GROUP BY method.path`;
