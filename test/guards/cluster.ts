import { migrate } from '../../src/database/migrate';
import {
  CLUSTER_URL,
  inCluster,
  startInTemporaryDirectory,
  TEMPLATE_DATABASE,
  withDatabase,
} from '../support/postgres';

/** One Postgres for all runs of tests, with the migrated database that test files clone. */
export interface GuardsCluster {
  readonly url: string;
  /** What test files are told of it: with these, jest needs no global set-up. */
  readonly environment: Readonly<Record<string, string>>;
  /** Makes a migrated database for `work`, and drops it. */
  withDatabase<R>(work: (connectionString: string) => Promise<R>): Promise<R>;
  stop(): Promise<void>;
}

const TEMPLATE = 'guards_template';
const SCRATCH = 'guards_scratch';

/** Starts it; a migration has no checks to take out, so it is done once. */
export async function startGuardsCluster(): Promise<GuardsCluster> {
  const { postgres, remove } = await startInTemporaryDirectory();
  const url = postgres.connectionString;
  const run = (sql: string): Promise<void> =>
    inCluster(url, async (client) => {
      await client.query(sql);
    });
  try {
    await run(`CREATE DATABASE ${TEMPLATE} TEMPLATE template0`);
    await migrate({ connectionString: withDatabase(url, TEMPLATE) });
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    url,
    environment: { [CLUSTER_URL]: url, [TEMPLATE_DATABASE]: TEMPLATE },
    withDatabase: async (work) => {
      await run(`CREATE DATABASE ${SCRATCH} TEMPLATE ${TEMPLATE}`);
      try {
        return await work(withDatabase(url, SCRATCH));
      } finally {
        await run(`DROP DATABASE ${SCRATCH} WITH (FORCE)`);
      }
    },
    stop: remove,
  };
}
