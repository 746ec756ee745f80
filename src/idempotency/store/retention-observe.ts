import type { SqlClient } from './database';
import type { RetentionObservation } from './retention-events';
import { COUNT_KEPT, COUNT_PARTITIONS, COUNT_SAMPLE, SELECT_SAMPLE_PERCENT } from './sql/retention';

/** Pages of 8 KiB that are read at most, or nearly: 64 MiB, some hundred thousand records. */
const SAMPLE_PAGES = 8_192;

/**
 * Looks how the records stand: exactly while they fit into a sample, by estimate from then on, so that a look costs the
 * same at any size. An index that would find the open claims would cost every completion its HOT update.
 *
 * @param samplePages pages that are read at most, or nearly. Default 8,192
 */
export async function observeRecords(client: SqlClient, samplePages = SAMPLE_PAGES): Promise<RetentionObservation> {
  const partitions = await countOf(client, COUNT_PARTITIONS);
  const [sample] = await client.$queryRawUnsafe<{ percent: number }[]>(SELECT_SAMPLE_PERCENT, samplePages);
  const percent = sample?.percent ?? 100;
  const states = await client.$queryRawUnsafe<{ state: string; count: number; oldestAgeMs: number }[]>(
    COUNT_SAMPLE,
    percent,
  );
  return {
    partitions,
    records: Object.fromEntries(states.map(({ state, count }) => [state, Math.round((count * 100) / percent)])),
    oldestClaimAgeMs: states.find(({ state }) => state === 'claimed')?.oldestAgeMs ?? 0,
    kept: await countOf(client, COUNT_KEPT),
    sampled: percent < 100,
  };
}

async function countOf(client: SqlClient, statement: string): Promise<number> {
  const [row] = await client.$queryRawUnsafe<{ count: number }[]>(statement);
  return row?.count ?? 0;
}
