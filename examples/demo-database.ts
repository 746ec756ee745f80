import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../src/database/embedded-postgres';

/** The database of the demo. */
export interface DemoDatabase {
  readonly connectionString: string;
  /** Stops and removes it; one that was there before is left alone. */
  close(): Promise<void>;
}

/** Takes the database of DATABASE_URL, or makes one that goes when it is closed. */
export async function openDemoDatabase(print: (line: string) => void): Promise<DemoDatabase> {
  const url = process.env['DATABASE_URL'];
  if (url !== undefined && url !== '') return { connectionString: url, close: () => Promise.resolve() };
  const dataDirectory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-demo-'));
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(dataDirectory, 0o755);
  const removeFiles = (): Promise<void> => rm(dataDirectory, { recursive: true, force: true });
  try {
    const postgres = await startEmbeddedPostgres({ dataDirectory, onLog: print });
    return { connectionString: postgres.connectionString, close: () => postgres.stop().then(removeFiles) };
  } catch (error) {
    await removeFiles();
    throw error;
  }
}
