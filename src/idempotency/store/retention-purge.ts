import { setTimeout as delay } from 'node:timers/promises';
import { again } from './again';
import type { SqlClient } from './database';
import type { RetentionEvent } from './retention-events';
import { PURGE_UNDATED, SELECT_METHODS_TO_PURGE } from './sql/retention';

/** What purging needs. */
export interface PurgeOptions {
  readonly client: SqlClient;
  readonly onEvent: (event: RetentionEvent) => void;
  /** Most records of one statement. */
  readonly batchSize: number;
  /** Asked before each batch. */
  readonly mayGoOn: () => boolean;
}

/**
 * Deletes the undated records whose retention is over (design 4.11), by the methods and promises in the database, so that
 * a process which knows fewer methods deletes the same. After each batch it rests as long as that took, so that callers
 * get at least half of what the database has to give.
 */
export async function purgeUndated({ client, onEvent, batchSize, mayGoOn }: PurgeOptions): Promise<void> {
  const methods = await client.$queryRawUnsafe<{ id: number; path: string }[]>(SELECT_METHODS_TO_PURGE);
  for (const { id, path } of methods) {
    let records = 0;
    let from: string | null = '-infinity';
    try {
      while (from !== null && mayGoOn()) {
        const startedAt = performance.now();
        const batch = await purgeBatch(client, id, from, batchSize);
        records += batch.count;
        from = batch.count < batchSize ? null : batch.through;
        if (from !== null) await delay(performance.now() - startedAt);
      }
    } finally {
      if (records > 0) onEvent({ type: 'purged', path, records });
    }
  }
}

interface Batch {
  readonly count: number;
  /** When the youngest of them was claimed. */
  readonly through: string | null;
}

async function purgeBatch(client: SqlClient, method: number, from: string, batchSize: number): Promise<Batch> {
  const [batch] = await again(() => client.$queryRawUnsafe<Batch[]>(PURGE_UNDATED, method, from, batchSize));
  return batch ?? { count: 0, through: null };
}
