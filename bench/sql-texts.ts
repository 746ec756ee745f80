/** Texts that were tried for the fence. $8 is the idle limit; the other parameters are in the order of `COMPLETE_IF_HELD`. */

const SETTINGS = `
  set_config('synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
  set_config('idle_in_transaction_session_timeout', $8::text, true)`;

const SETTING = `WITH setting AS MATERIALIZED (SELECT ${SETTINGS})`;

const SET = `state = 'completed', completed_at = statement_timestamp(), status_code = $4::smallint,
  status_message = $5::text, response = $6::bytea, trailers = $7::bytea, resource = $9::text, answer_kept = $10::boolean`;

const HELD = `record.bucket = $1::date AND record.id = $2::uuid AND record.owner_token = $3::uuid AND record.state = 'claimed'`;

/** One text, and how many of the parameters it takes. */
export interface Fence {
  readonly name: string;
  readonly text: string;
  readonly parameters: number;
}

/** @param bucket `YYYY-MM-DD` */
export function FENCES(bucket: string): readonly Fence[] {
  const day = `idempotency_record_d${bucket.replaceAll('-', '')}`;
  const update = (table: string, from: string): string =>
    `UPDATE ${table} AS record SET ${SET} ${from} WHERE ${HELD} RETURNING record.attempt`;
  const upsert = (held: string): string => `
${SETTING}
INSERT INTO idempotency_record AS record
  (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id, instance)
SELECT 'epoch', 'epoch', $1::date, 1, 0::smallint, $2::uuid, $3::uuid, 'claimed', '\\x0000', 'nobody', 'never seen, as it is', ''
FROM setting
ON CONFLICT (bucket, id) DO UPDATE SET ${SET}
${held}`;
  return [
    { name: "the day's table", text: `${SETTING} ${update(day, 'FROM setting')}`, parameters: 10 },
    {
      name: "the day's table, failing by itself",
      text: `${SETTING}, fence AS (${update(day, 'FROM setting')}) SELECT 1 / count(*)::int AS held FROM fence`,
      parameters: 10,
    },
    {
      name: 'parent, failing by itself',
      text: `${SETTING}, fence AS (${update('idempotency_record', 'FROM setting')}) SELECT 1 / count(*)::int AS held FROM fence`,
      parameters: 10,
    },
    {
      name: "the day's table, settings in the WHERE",
      text: update(day, '').replace('WHERE', `WHERE (SELECT count(*) = 1 FROM (SELECT ${SETTINGS}) AS setting) AND`),
      parameters: 10,
    },
    {
      name: 'upsert',
      text: upsert(`WHERE record.owner_token = $3::uuid AND record.state = 'claimed' RETURNING record.attempt`),
      parameters: 10,
    },
    {
      name: 'upsert, failing by itself',
      text: upsert(`RETURNING 1 / (record.owner_token = $3::uuid AND record.created_at > 'epoch')::int AS held`),
      parameters: 10,
    },
  ];
}

/**
 * The settings sent before the fence, and the fence in the day's table as a plain UPDATE.
 *
 * @param bucket `YYYY-MM-DD`
 */
export function SETTINGS_APART(
  bucket: string,
): readonly { text: string; take: (values: readonly unknown[]) => unknown[] }[] {
  const day = `idempotency_record_d${bucket.replaceAll('-', '')}`;
  const text = `UPDATE ${day} AS record SET ${SET} WHERE ${HELD} RETURNING record.attempt`
    .replace('$9', '$8')
    .replace('$10', '$9');
  return [
    { text: `SELECT ${SETTINGS.replace('$8', '$1')}`, take: (values) => [values[7]] },
    { text, take: (values) => [...values.slice(0, 7), ...values.slice(8, 10)] },
  ];
}
