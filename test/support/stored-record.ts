import type { TestDatabase } from './postgres';

/** What the database says of the one record that a test made. Times are the database's, in epoch milliseconds. */
export interface StoredRecord {
  readonly state: string;
  readonly attempt: number;
  readonly leaseUntilMs: number;
}

/** Reads the only record there is. */
export async function onlyRecord(database: TestDatabase): Promise<StoredRecord> {
  const records = await database.rows<StoredRecord>(
    `SELECT state, attempt, (extract(epoch FROM lease_until) * 1000)::float8 AS "leaseUntilMs" FROM idempotency_record`,
  );
  const [record] = records;
  if (record === undefined || records.length > 1) throw new Error(`expected one record, found ${records.length}`);
  return record;
}

/** Ends the leases of all claims: the state after a lease's time, without the wait. */
export async function endLeases(database: TestDatabase): Promise<void> {
  await database.rows("UPDATE idempotency_record SET lease_until = now() WHERE state = 'claimed'");
}
