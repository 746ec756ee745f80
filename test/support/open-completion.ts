import type { ClaimRequest } from '../../src/idempotency/store/store';
import type { TestDatabase } from './postgres';

/** A completion under way: the server has the fence, and not its COMMIT. */
export interface OpenCompletion {
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

/** Completes a record on a connection of its own, without an end. */
export async function openCompletion(database: TestDatabase, { key }: ClaimRequest): Promise<OpenCompletion> {
  const client = await database.pool.connect();
  await client.query('BEGIN');
  await client.query(
    `UPDATE idempotency_record SET state = 'completed', completed_at = now(), status_code = 0 WHERE request_id = $1`,
    [key.text],
  );
  const end = async (how: 'COMMIT' | 'ROLLBACK'): Promise<void> => {
    await client.query(how);
    client.release();
  };
  return { commit: () => end('COMMIT'), rollBack: () => end('ROLLBACK') };
}
