/** Registers a method. $1 path, $2 retention ms, $3 max key age ms */
export const INSERT_METHOD = `
INSERT INTO idempotency_method (path, retention_ms, max_key_age_ms)
SELECT $1::text, $2::bigint, $3::bigint
WHERE NOT EXISTS (SELECT FROM idempotency_method WHERE path = $1::text)
ON CONFLICT (path) DO NOTHING`;

/** Lengthens what a method promises, never shortens it. $1 path, $2 retention ms, $3 max key age ms */
export const LENGTHEN_METHOD = `
UPDATE idempotency_method
SET retention_ms = greatest(retention_ms, $2::bigint), max_key_age_ms = greatest(max_key_age_ms, $3::bigint)
WHERE path = $1::text AND (retention_ms < $2::bigint OR max_key_age_ms < $3::bigint)`;

/** All methods that were ever registered. */
export const SELECT_METHODS = `SELECT id, path FROM idempotency_method`;
