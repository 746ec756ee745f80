import { OBSERVE, PURGE_DELIVERED } from './sql';
import type { OutboxObservation } from './relay-events';
import type { RelaySettings } from './relay-options';

const PURGE_BATCH = 1_000;
/** Deliveries wait for the purge of their own relay, so it takes no more than this at a time. */
const MOST_BATCHES = 10;

/** Deletes delivered events whose retention is over, in batches. Safe in several processes at once. How many it deleted. */
export async function purgeDelivered({ client, retentionMs }: Pick<RelaySettings, 'client' | 'retentionMs'>) {
  let purged = 0;
  let through = '-infinity';
  for (let batch = 0; batch < MOST_BATCHES; batch += 1) {
    const values = [retentionMs, PURGE_BATCH, through];
    const [row] = await client.$queryRawUnsafe<{ count: number; through: string | null }[]>(PURGE_DELIVERED, ...values);
    purged += row?.count ?? 0;
    if (row === undefined || row.count < PURGE_BATCH || row.through === null) break;
    through = row.through;
  }
  return purged;
}

/** Measures the outbox. It reads every undelivered event. */
export async function observeOutbox({ client }: Pick<RelaySettings, 'client'>): Promise<OutboxObservation> {
  const [observation] = await client.$queryRawUnsafe<OutboxObservation[]>(OBSERVE);
  return observation ?? { pending: 0, parked: 0, oldestAgeMs: 0 };
}
