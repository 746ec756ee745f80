import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Pool, type QueryResultRow } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/database/embedded-postgres';
import { migrate } from '../../src/database/migrate';
import { serverPid, startServer, stopServer } from '../../src/database/postgres-server';

/** Variables that hand the cluster of the run from the global set-up to the test files. */
export const CLUSTER_URL = 'GRPC_IDEMPOTENCY_TEST_CLUSTER_URL';
export const TEMPLATE_DATABASE = 'GRPC_IDEMPOTENCY_TEST_TEMPLATE';

/** Any fixed number: who clones the template holds this advisory lock, since two clones at once refuse each other. */
const CLONE_LOCK = 7_283_645_020;

/** Settings for all test clusters: several processes with two pools each, from two test files at once. */
const TEST_SETTINGS = { max_connections: '300' };

/** A database of one test file. */
export interface TestDatabase {
  readonly connectionString: string;
  /** Connections beside those under test, for counting what is true. */
  readonly pool: Pool;
  /** Rows of a statement on `pool`. */
  rows<Row extends QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** How many rows a table holds; its name is taken as SQL. */
  count(table: string): Promise<number>;
  /** Closes `pool` and drops the database, cutting what is still connected. */
  drop(): Promise<void>;
}

/** Makes a database: migrated, or empty on request. Call `drop` in `afterAll`. */
export async function createTestDatabase(options: { readonly empty?: boolean } = {}): Promise<TestDatabase> {
  const clusterUrl = required(CLUSTER_URL);
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const template = options.empty === true ? 'template0' : required(TEMPLATE_DATABASE);
  await inCluster(clusterUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [CLONE_LOCK]);
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  });
  return openDatabase(withDatabase(clusterUrl, name), () =>
    inCluster(clusterUrl, async (client) => {
      await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    }),
  );
}

/** A server of one test alone, to be stopped, killed and started again on the same port. */
export interface OwnPostgres extends TestDatabase {
  /** Stops the server in good order, running transactions roll back, and starts it again. */
  restart(): Promise<void>;
  /** Stops the server; `immediate` is a crash. */
  stopServer(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Starts it after `stopServer`. */
  startServer(): Promise<void>;
  /** Process id of the server. */
  pid(): Promise<number>;
}

/** Starts a server of its own with a migrated database. Call `drop` in `afterAll`: it stops and removes the server. */
export async function startOwnPostgres(
  options: { readonly durable?: boolean; readonly settings?: Readonly<Record<string, string>> } = {},
): Promise<OwnPostgres> {
  const settings = { ...TEST_SETTINGS, ...options.settings };
  const { postgres, remove } = await startInTemporaryDirectory(options.durable ?? false, settings);
  const { cluster, connectionString, port } = postgres;
  await migrate({ connectionString });
  const fsync = options.durable === true ? 'on' : 'off';
  const start = async () => {
    await startServer(cluster, { port, settings: { fsync, ...settings } });
  };
  return {
    ...openDatabase(connectionString, remove),
    restart: async () => {
      await stopServer(cluster);
      await start();
    },
    stopServer: (mode) => stopServer(cluster, mode),
    startServer: start,
    pid: async () => {
      const pid = await serverPid(cluster);
      if (pid === undefined) throw new Error('The server of this test does not run.');
      return pid;
    },
  };
}

/** Starts a cluster whose files go with it. Without durability unless asked for: tests are many, power cuts few. */
export async function startInTemporaryDirectory(
  durable = false,
  settings: Readonly<Record<string, string>> = TEST_SETTINGS,
): Promise<{ readonly postgres: EmbeddedPostgres; remove(): Promise<void> }> {
  const dataDirectory = await makeTemporaryDirectory();
  const postgres = await startEmbeddedPostgres({ dataDirectory, durable, settings });
  const remove = async () => {
    await postgres.stop('immediate');
    await rm(dataDirectory, { recursive: true, force: true });
  };
  return { postgres, remove };
}

/** A new directory that everybody may enter: as root, Postgres runs as another user. */
export async function makeTemporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-test-'));
  await chmod(directory, 0o755);
  return directory;
}

/** The same server, another database. */
export function withDatabase(connectionString: string, database: string): string {
  const url = new URL(connectionString);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs statements on one connection to the cluster's own database. */
export async function inCluster(clusterUrl: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: clusterUrl });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

/** A database that is there already, with connections of this process; `remove` follows when it is dropped. */
export function openDatabase(connectionString: string, remove: () => Promise<void>): TestDatabase {
  // Whatever the default of the server that is tested: tests count what is committed, and hold locks for others to meet.
  const pool = new Pool({ connectionString, max: 4, options: '-c default_transaction_isolation=read\\ committed' });
  // Tests cut connections and stop servers; what matters to a test is the statement that it runs itself.
  pool.on('error', () => undefined);
  const rows = async <Row extends QueryResultRow>(sql: string, values: readonly unknown[] = []) =>
    (await pool.query<Row>(sql, [...values])).rows;
  return {
    connectionString,
    pool,
    rows,
    count: async (table) => Number((await rows<{ count: string }>(`SELECT count(*) FROM ${table}`))[0]?.count),
    drop: async () => {
      await pool.end();
      await remove();
    },
  };
}

function required(variable: string): string {
  const value = process.env[variable];
  if (value === undefined) throw new Error(`${variable} is not set: test/support/global-setup.ts did not run.`);
  return value;
}
