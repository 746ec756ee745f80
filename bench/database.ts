import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startEmbeddedPostgres } from '../src/database/embedded-postgres';
import { migrate } from '../src/database/migrate';
import { CREATE_TABLES } from './handlers';

/** The database of the bench. */
export interface BenchDatabase {
  readonly connectionString: string;
  /** Runs one statement on a connection of its own. */
  rows<Row>(sql: string): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/**
 * Starts a Postgres of its own that flushes at every commit, as the service does by default. Checkpoints are kept out of
 * the run: they would fall on one side of a pair.
 *
 * @param durable false where only the processor counts and the disk would be noise
 */
export async function openBenchDatabase(durable = true): Promise<BenchDatabase> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-bench-'));
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(dataDirectory, 0o755);
  const removeFiles = (): Promise<void> => rm(dataDirectory, { recursive: true, force: true });
  try {
    const settings = { max_wal_size: '8GB', checkpoint_timeout: '1h' };
    const postgres = await startEmbeddedPostgres({ dataDirectory, settings, durable });
    const { connectionString } = postgres;
    await migrate({ connectionString });
    const client = new Client({ connectionString });
    await client.connect();
    await client.query(CREATE_TABLES);
    return {
      connectionString,
      rows: async <Row>(sql: string) => (await client.query(sql)).rows as readonly Row[],
      close: async () => {
        await client.end();
        await postgres.stop();
        await removeFiles();
      },
    };
  } catch (error) {
    await removeFiles();
    throw error;
  }
}
