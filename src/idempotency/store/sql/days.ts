/**
 * Waits for another process that is making days, and sets how long this transaction waits for anything. The lock only
 * keeps two processes from making the same day at once, which would fail one of them; nothing depends on it.
 */
export const CREATE_DAY_LOCK = `
SELECT set_config('lock_timeout', '4s', true), pg_advisory_xact_lock(hashtext('idempotency_record days'))::text`;

/** The days that are missing, as `YYYY-MM-DD`; whole days, so that the last one is among them. $1 how many days ahead */
export const SELECT_DAYS_TO_CREATE = `
SELECT to_char(day, 'YYYY-MM-DD') AS day
FROM idempotency_retention AS retention,
  generate_series(
    date_trunc('day', (
      now() - (SELECT coalesce(max(max_key_age_ms), 0) FROM idempotency_method) * interval '1 millisecond'
    ) AT TIME ZONE 'UTC'),
    (now() AT TIME ZONE 'UTC') + $1::int * interval '1 day',
    interval '1 day'
  ) AS day
WHERE to_regclass('idempotency_record_d' || to_char(day, 'YYYYMMDD')) IS NULL
  AND day::date > retention.dropped_through
ORDER BY day`;

/** @param day `YYYY-MM-DD` */
export function createDay(day: string): string {
  return `CREATE TABLE ${tableOf(day)} (LIKE idempotency_record INCLUDING ALL) WITH (fillfactor = 50)`;
}

/** @param day `YYYY-MM-DD` */
export function attachDay(day: string): string {
  const from = `'${day}'::date`;
  return `ALTER TABLE idempotency_record ATTACH PARTITION ${tableOf(day)} FOR VALUES FROM (${from}) TO (${from} + 1)`;
}

/**
 * The table of a day, the one thing that is spliced into statements.
 *
 * @param day `YYYY-MM-DD`
 */
export function tableOf(day: string): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) throw new TypeError(`not a day: ${day}`);
  return `idempotency_record_d${day.replaceAll('-', '')}`;
}
