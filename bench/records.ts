import type { Client } from 'pg';
import { tableOf } from '../src/idempotency/store/sql/days';

/** Bytes of the answers that are recorded; design 8.2 measures a record beside one of 200. */
export const ANSWER_BYTES = 200;

/** A UUIDv7 of a time, as SQL; its other bits from a text that is different for every record. */
const UUID_V7 = `(substr(ms_hex, 1, 8) || '-' || substr(ms_hex, 9) || '-7' || substr(noise, 1, 3) || '-8' ||
  substr(noise, 4, 3) || '-' || substr(noise, 7, 12))`;

/**
 * Inserts completed records, as a service leaves them: keys of one method, spread evenly over some days up to now, each
 * tenth undated, of a thousand accounts. Then takes statistics, and leaves nothing for autovacuum to do meanwhile.
 *
 * @param daysBack how many days; their tables must be there
 */
export async function fillRecords(client: Client, records: number, daysBack: number): Promise<void> {
  await client.query(
    `INSERT INTO idempotency_record (
       created_at, lease_until, completed_at, bucket, attempt, method, status_code, id, owner_token, state, fingerprint,
       scope, request_id, instance, response
     )
     SELECT at, at + interval '30 seconds', at + interval '20 ms',
       CASE WHEN is_dated THEN (at AT TIME ZONE 'UTC')::date ELSE '1970-01-01' END, 1,
       (SELECT min(id) FROM idempotency_method), 0,
       (CASE WHEN is_dated THEN ms_hex ELSE substr(noise, 20, 12) END || substr(md5('id' || n), 1, 20))::uuid,
       gen_random_uuid(), 'completed', '\\x01'::bytea || sha256(('r' || n)::bytea) || sha256(('c' || n)::bytea),
       'account-' || n % 1000, CASE WHEN is_dated THEN ${UUID_V7} ELSE gen_random_uuid()::text END, 'payments-7d9f:4711',
       substr(sha256(('1' || n)::bytea) || sha256(('2' || n)::bytea) || sha256(('3' || n)::bytea) ||
         sha256(('4' || n)::bytea) || sha256(('5' || n)::bytea) || sha256(('6' || n)::bytea) ||
         sha256(('7' || n)::bytea), 1, ${ANSWER_BYTES})
     FROM (
       SELECT n, n % 10 <> 0 AS is_dated, at, md5('key' || n) AS noise,
         lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') AS ms_hex
       FROM (
         SELECT n, now() - interval '1 second' - (1 - n::float8 / $1) * $2 * interval '1 day' AS at
         FROM generate_series(1, $1::int) AS n
       ) AS moment
     ) AS made`,
    [records, daysBack],
  );
  await client.query('VACUUM (ANALYZE, FREEZE) idempotency_record');
}

/** What a record takes beyond its answer, bytes: heap and index, as if every page were filled. */
export interface RecordSize {
  readonly heap: number;
  readonly index: number;
  readonly records: number;
}

/** Measures the records of one day in a copy of its table whose pages are full. */
export async function measureRecordSize(client: Client, day: string): Promise<RecordSize> {
  await client.query(`CREATE TABLE bench_full_pages (LIKE ${tableOf(day)} INCLUDING ALL) WITH (fillfactor = 100)`);
  try {
    await client.query(`INSERT INTO bench_full_pages SELECT * FROM ${tableOf(day)} ORDER BY id`);
    await client.query('VACUUM (ANALYZE) bench_full_pages');
    const { rows } = await client.query<RecordSize>(
      `SELECT count(*)::int AS records, pg_relation_size('bench_full_pages')::float8 AS heap,
         pg_indexes_size('bench_full_pages')::float8 AS index
       FROM bench_full_pages`,
    );
    const { records = 0, heap = 0, index = 0 } = rows[0] ?? {};
    return { records, heap: heap / records - ANSWER_BYTES, index: index / records };
  } finally {
    await client.query('DROP TABLE bench_full_pages');
  }
}
