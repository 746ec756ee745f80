/** What must be true of a database before anything is kept in it. Always one row. */
export const CHECK_DATABASE = `
SELECT current_setting('server_version_num')::integer AS version,
  current_setting('transaction_read_only') = 'on' AS "readOnly",
  pg_is_in_recovery() AS standby,
  ARRAY(
    SELECT name FROM unnest(ARRAY['idempotency_record', 'idempotency_method', 'idempotency_retention']) AS name
    WHERE to_regclass(name) IS NULL
  ) AS "missing"`;
