import type { SqlClient } from './database';
import type { RecordRow } from './judge';
import { LOOK_UP } from './sql/look-up';
import type { ClaimRequest } from './outcomes';

/** Reads what there is of a key, always one row. */
export async function readRecord(records: SqlClient, { key, policy }: ClaimRequest, id: string): Promise<RecordRow> {
  const datedAt = key.dated?.atMs ?? null;
  const [row] = await records.$queryRawUnsafe<RecordRow[]>(LOOK_UP, key.bucket, id, datedAt, policy.maxKeyAgeMs);
  if (row === undefined) throw new Error('a look-up gave no row');
  return row;
}
