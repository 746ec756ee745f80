import type { PoolClient } from 'pg';
import { connect, type Database } from '../../src/database/connect';
import { createTransactionPool } from '../../src/database/pg-pool';
import type { Prisma } from '../../src/gen/prisma/client';
import { SENT_WITH_COMMIT, type TransactionOptions } from '../../src/idempotency/index';
import { deferred } from '../support/deferred';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { until } from '../support/until';

type Tx = Prisma.TransactionClient;

let base: TestDatabase;

beforeAll(async () => {
  base = await createTestDatabase();
  await base.rows('CREATE TABLE note (id int PRIMARY KEY)');
});
afterAll(() => base.drop());
beforeEach(() => base.rows('TRUNCATE note'));

const notes = async () => (await base.rows<{ id: number }>('SELECT id FROM note ORDER BY id')).map(({ id }) => id);

describe('COMMIT', () => {
  const open = async () => {
    const pool = createTransactionPool({ connectionString: base.connectionString, max: 1 }, { endWithinMs: 5_000 });
    pool.on('error', () => undefined);
    const transaction = await pool.connect();
    const run = (text: string, values: unknown[] = []) => transaction.query({ text, values, rowMode: 'array' });
    const close = async () => {
      transaction.release();
      await pool.end();
    };
    return { run, close };
  };

  it('is refused with what was kept back for it where BEGIN failed, though that was swallowed', async () => {
    const { run, close } = await open();
    await run('BEGIN');
    await run('SET TRANSACTION ISOLATION LEVEL NONSENSE');
    await expect(run('INSERT INTO note (id) VALUES (1)')).rejects.toThrow();
    await run(`${SENT_WITH_COMMIT} INSERT INTO note (id) VALUES (2)`);

    await expect(run('COMMIT')).rejects.toThrow('could not begin');

    expect(await notes()).toEqual([]);
    await close();
  });

  it('does not follow a statement that never left, whose values could not be written', async () => {
    const { run, close } = await open();
    const unprintable = {
      toPostgres: () => {
        throw new Error('unprintable');
      },
    };
    await run('BEGIN');
    await run('INSERT INTO note (id) VALUES (1)');
    await run(`${SENT_WITH_COMMIT} INSERT INTO note (id) VALUES ($1)`, [unprintable]);

    await expect(run('COMMIT')).rejects.toThrow('unprintable');

    expect(await notes()).toEqual([]);
    await close();
  });
});

describe('a connection on which a statement still waits', () => {
  let database: Database;
  let blocker: PoolClient;

  beforeEach(async () => {
    await base.rows('INSERT INTO note VALUES (1)');
    blocker = await base.pool.connect();
    await blocker.query('BEGIN; SELECT FROM note WHERE id = 1 FOR UPDATE');
  });

  afterEach(async () => {
    await blocker.query('ROLLBACK');
    blocker.release();
    await database.close();
  });

  const open = async (endWithinMs: number): Promise<void> => {
    database = connect({ connectionString: base.connectionString, businessPoolSize: 1, endWithinMs });
    await transact((tx) => tx.$queryRawUnsafe('SELECT 1'));
  };
  const transact = <R>(work: (tx: Tx) => Promise<R>, options: TransactionOptions = { isIdle: () => true }) =>
    database.transactions.$transaction(work, options);

  /** Its first statement waits for the row, nobody waits for it, and it gives up when told. */
  const giveUp = (options: TransactionOptions, told: Promise<unknown>) =>
    transact(
      async (tx) => {
        tx.$queryRawUnsafe('UPDATE note SET id = 1 WHERE id = 1').catch(() => undefined);
        await told;
        throw new Error('gave up');
      },
      { isIdle: () => false, ...options },
    );
  const isWaiting = () =>
    until('the statement waits', async () => {
      const waiting = `pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE note%'`;
      return (await base.count(waiting)) > 0;
    });
  const next = () => transact((tx) => tx.$executeRawUnsafe('INSERT INTO note VALUES (2)'));

  it('is not lent again when its ROLLBACK got no answer: the next transaction gets another', async () => {
    await open(300);
    const given = giveUp({}, isWaiting());
    const following = next();

    await expect(given).rejects.toThrow('gave up');
    await following;

    expect(await notes()).toEqual([1, 2]);
  });

  it('is not lent again while the ROLLBACK of a transaction whose time is over is on its way', async () => {
    await open(2_000);
    const over = deferred();
    const given = giveUp({ timeout: 100 }, over.promise);
    await isWaiting();
    const following = next();
    // Its time is over by then, which nothing tells outside.
    setTimeout(over.resolve, 200);

    await expect(given).rejects.toThrow('gave up');
    await following;

    expect(await notes()).toEqual([1, 2]);
  });
});
