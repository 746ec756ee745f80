import { setTimeout as delay } from 'node:timers/promises';
import { connect, type Database } from '../../src/database/connect';
import { deferred } from '../support/deferred';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres';

let server: OwnPostgres;
let database: Database;
let idleErrors: string[];

beforeAll(async () => {
  server = await startOwnPostgres();
}, 60_000);

afterAll(() => server.drop());

beforeEach(() => {
  idleErrors = [];
  const { connectionString } = server;
  const onError = (error: Error) => idleErrors.push(error.message);
  database = connect({ connectionString, businessPoolSize: 2, storePoolSize: 1, onError });
});

afterEach(() => database.close());

const one = (client = database.business) => client.$queryRawUnsafe<{ pid: number }[]>('SELECT pg_backend_pid() AS pid');

/** Ends every connection of the two pools, as a restart does. */
const terminateAll = () =>
  server.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'grpc-idempotency %'`,
  );

/** Waits for what another party does; the test's own timeout ends it. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

test('idle connections that the server ends do not end the process, and the next statement opens new ones', async () => {
  const [before] = await one();
  await one(database.store);
  await terminateAll();
  await until(() => idleErrors.length === 2);
  const [after] = await one();
  expect(after?.pid).not.toBe(before?.pid);
  expect(await one(database.store)).toHaveLength(1);
});

test('a connection that the server ends between two statements of a transaction is an error of that transaction', async () => {
  const attempt = database.business.$transaction(async (tx) => {
    await tx.$queryRawUnsafe('SELECT 1 AS one');
    await terminateAll();
    return tx.$queryRawUnsafe('SELECT 1 AS one');
  });
  await expect(attempt).rejects.toThrow();
  // The dead connection may be handed out once more before its end was noticed; the one after it is new.
  await one().catch(() => undefined);
  expect(await one()).toHaveLength(1);
});

test('a stopped database is an error of each statement at once; started again, the next statement reaches it', async () => {
  await one();
  await server.stopServer();
  await until(() => idleErrors.length === 1);
  await expect(one()).rejects.toMatchObject({
    meta: { driverAdapterError: { cause: { kind: 'DatabaseNotReachable' } } },
  });
  await expect(database.business.$transaction((tx) => tx.$queryRawUnsafe('SELECT 1'))).rejects.toMatchObject({
    code: 'P1001',
  });
  await server.startServer();
  expect(await one()).toHaveLength(1);
});

test('a handler pool without a free connection leaves the store its own', async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const holders = [0, 1].map(() =>
    database.business.$transaction(async (tx) => {
      await tx.$queryRawUnsafe('SELECT 1 AS one');
      await released;
    }),
  );
  const [used] = await server.rows<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'grpc-idempotency business'`,
  );
  expect(used?.count).toBeLessThanOrEqual(2);
  expect(await one(database.store)).toHaveLength(1);
  release();
  await Promise.all(holders);
});

test('a wait for a connection is told where all were in use, and only there', async () => {
  const waits: [string, number][] = [];
  const narrow = connect({
    ...{ connectionString: server.connectionString, businessPoolSize: 1, storePoolSize: 1 },
    onPoolWait: (...wait) => waits.push(wait),
  });
  const holding = deferred();
  const release = deferred();
  await narrow.business.$queryRawUnsafe('SELECT 1 AS one');
  await narrow.store.$queryRawUnsafe('SELECT 1 AS one');
  const holder = narrow.transactions.$transaction(
    async (tx) => {
      await tx.$queryRawUnsafe('SELECT 1 AS one');
      holding.resolve();
      await release.promise;
    },
    { maxWait: 5_000, timeout: 5_000 },
  );
  await holding.promise;
  expect(waits).toEqual([]);
  const waiter = one(narrow.business).then((rows) => rows.length);
  // Nothing tells that it waits, but the time that it has waited afterwards.
  await delay(50);
  release.resolve();
  await Promise.all([holder, waiter]);
  await narrow.close();
  expect(waits).toEqual([['business', expect.any(Number)]]);
  expect(waits[0]?.[1]).toBeGreaterThan(10);
  expect(waits[0]?.[1]).toBeLessThan(5_000);
});

test('times keep their meaning, whatever zone and style the database and the connection string ask for', async () => {
  const shifted = new URL(server.connectionString);
  shifted.searchParams.set('options', '-c TimeZone=Asia/Tokyo -c DateStyle=German -c lock_timeout=1234');
  const elsewhere = connect({ connectionString: shifted.href });
  const moment = new Date('2026-11-30T13:14:15.000Z');
  const [row] = await elsewhere.store.$queryRawUnsafe<{ read: Date; epoch: number; lock_timeout: string }[]>(
    `SELECT $1::timestamptz AS read, extract(epoch FROM $1::timestamptz)::int AS epoch, current_setting('lock_timeout') AS lock_timeout`,
    moment,
  );
  await elsewhere.close();
  expect(row).toEqual({ read: moment, epoch: moment.getTime() / 1_000, lock_timeout: '1234ms' });
});

test('a statement that repeats is prepared once per connection', async () => {
  await database.store.$queryRawUnsafe('SELECT 7 AS seven');
  await database.store.$queryRawUnsafe('SELECT 7 AS seven');
  const prepared = await database.store.$queryRawUnsafe<{ statement: string }[]>(
    `SELECT statement FROM pg_prepared_statements WHERE statement = 'SELECT 7 AS seven'`,
  );
  expect(prepared).toHaveLength(1);
});

test('the statements of the store are planned once, those of handlers as the database sees fit', async () => {
  const mode = async (client: Database['store']) => {
    const [row] = await client.$queryRawUnsafe<{ mode: string }[]>(`SELECT current_setting('plan_cache_mode') AS mode`);
    return row?.mode;
  };

  expect([await mode(database.store), await mode(database.business)]).toEqual(['force_generic_plan', 'auto']);
});

test('closing waits for what runs, and twice is once', async () => {
  const running = database.business.$queryRawUnsafe<{ slept: string }[]>(`SELECT 'yes' AS slept FROM pg_sleep(0.2)`);
  const result = running.then((rows) => rows[0]?.slept);
  await until(() => true);
  await Promise.all([database.close(), database.close()]);
  expect(await result).toBe('yes');
  expect(
    await server.rows(`SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'grpc-idempotency %'`),
  ).toEqual([]);
});
