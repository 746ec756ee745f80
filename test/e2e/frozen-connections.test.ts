import { connect, type Database } from '../../src/database/connect';
import { SENT_WITH_COMMIT } from '../../src/idempotency/index';
import type { Prisma } from '../../src/gen/prisma/client';
import { isLostConnection, isOutage, provesRollback } from '../../src/idempotency/store/database-error';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy';
import { TRANSACTION_WAYS, type TransactionWay } from '../support/transaction-ways';
import { until } from '../support/until';

/** Short, so that a test may wait for them; long enough for a statement on a busy machine. */
const END_WITHIN_MS = 700;
const STORE_ANSWER_WITHIN_MS = 700;

let base: TestDatabase;
let proxy: PostgresProxy;
let database: Database;
let way: TransactionWay;

beforeAll(async () => {
  base = await createTestDatabase();
  await base.rows('CREATE TABLE note (id int PRIMARY KEY)');
});

afterAll(() => base.drop());

beforeEach(async () => {
  await base.rows('TRUNCATE note');
  proxy = await startPostgresProxy(base.connectionString);
  database = connect({
    ...{ connectionString: proxy.connectionString, businessPoolSize: 1, storePoolSize: 2 },
    ...{ endWithinMs: END_WITHIN_MS, storeAnswerWithinMs: STORE_ANSWER_WITHIN_MS },
  });
});

afterEach(async () => {
  await database.close();
  await proxy.close();
});

const write = (tx: Prisma.TransactionClient, id: number) =>
  tx.$executeRawUnsafe('INSERT INTO note (id) VALUES ($1)', id);
const lastly = (tx: Prisma.TransactionClient, id: number) =>
  tx.$executeRawUnsafe(`${SENT_WITH_COMMIT} INSERT INTO note (id) VALUES ($1)`, id);
const inTransaction = <R>(work: (tx: Prisma.TransactionClient) => Promise<R>, timeout = 5_000) =>
  way(database).$transaction(work, { timeout, isIdle: () => true });
const count = () => base.count('note');
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.each(TRANSACTION_WAYS)('a connection that falls silent in a transaction %s', (_, chosen) => {
  beforeAll(() => {
    way = chosen;
  });

  it('before its COMMIT arrives leaves an unknown outcome, and is given up', async () => {
    proxy.freezeAt('COMMIT', false);

    const error = await errorOf(inTransaction((tx) => write(tx, 1)));

    expect({ lost: isLostConnection(error), outage: isOutage(error), rolledBack: provesRollback(error) }).toEqual({
      ...{ lost: true, outage: true, rolledBack: false },
    });
    expect(await inTransaction((tx) => tx.$queryRawUnsafe('SELECT 1 AS one'))).toEqual([{ one: 1 }]);
    expect(await count()).toBe(0);
  });

  it('after its COMMIT arrived leaves an unknown outcome too, though it was committed', async () => {
    proxy.freezeAt('COMMIT', true);

    const error = await errorOf(inTransaction((tx) => write(tx, 1)));

    expect({ lost: isLostConnection(error), rolledBack: provesRollback(error) }).toEqual({
      ...{ lost: true, rolledBack: false },
    });
    await until('the note is written', async () => (await count()) === 1);
    await inTransaction((tx) => write(tx, 2));
  });

  it('at a statement that is sent with COMMIT leaves an unknown outcome', async () => {
    proxy.freezeAt(SENT_WITH_COMMIT, true);

    const error = await errorOf(
      inTransaction(async (tx) => {
        await write(tx, 1);
        await lastly(tx, 2);
      }),
    );

    expect({ lost: isLostConnection(error), rolledBack: provesRollback(error) }).toEqual({
      ...{ lost: true, rolledBack: false },
    });
    await until('both notes are written', async () => (await count()) === 2);
    await inTransaction((tx) => write(tx, 3));
  });

  it('within its transaction is given up when the time of the transaction is over', async () => {
    const stuck = inTransaction(async (tx) => {
      await write(tx, 1);
      proxy.freeze();
      await write(tx, 2);
    }, 300);

    await expect(stuck).rejects.toThrow();
    expect(await inTransaction((tx) => tx.$queryRawUnsafe('SELECT 1 AS one'))).toEqual([{ one: 1 }]);
    expect(await count()).toBe(0);
  });

  it('is an error of a lost connection for each statement of the store on it, and the next ones get new connections', async () => {
    const ask = () => database.store.$queryRawUnsafe('SELECT 1 AS one');
    await Promise.all([ask(), ask()]);
    proxy.freeze();

    const errors = await Promise.all([ask(), ask()].map(errorOf));

    expect(errors.map((error) => [isLostConnection(error), isOutage(error)])).toEqual([
      [true, true],
      [true, true],
    ]);
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([[{ one: 1 }], [{ one: 1 }], [{ one: 1 }]]);
  });

  it('does not keep the store from closing', async () => {
    await database.store.$queryRawUnsafe('SELECT 1');
    proxy.freeze();
    const asked = errorOf(database.store.$queryRawUnsafe('SELECT 1'));

    await database.close();

    expect(isOutage(await asked)).toBe(true);
  });
});
