import { connect, type ConnectOptions, type Database } from '../../src/database/connect';
import { createTransactionPool } from '../../src/database/pg-pool';
import { SENT_WITH_COMMIT } from '../../src/idempotency/index';
import type { Prisma } from '../../src/gen/prisma/client';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy';
import { TRANSACTION_WAYS, type TransactionWay } from '../support/transaction-ways';

type Tx = Prisma.TransactionClient;

const BOUNDS = { endWithinMs: 5_000 };
/** Bind, Describe, Execute, Sync of a statement that the connection has prepared; Parse comes before it once. */
const PREPARED = 'BDES';
const BEGIN = 'PBE';
const COMMIT = 'Q';

let base: TestDatabase;
let proxy: PostgresProxy;
let database: Database;
let way: TransactionWay;

beforeAll(async () => {
  base = await createTestDatabase();
  await base.rows(`CREATE TABLE note (id int PRIMARY KEY, text text NOT NULL DEFAULT '',
    CONSTRAINT note_text_unique UNIQUE (text) DEFERRABLE INITIALLY DEFERRED)`);
});

afterAll(() => base.drop());

beforeEach(async () => {
  await base.rows('DROP TABLE IF EXISTS later');
  await base.rows('TRUNCATE note');
  proxy = await startPostgresProxy(base.connectionString);
  open({});
});

afterEach(async () => {
  await database.close();
  await proxy.close();
});

function open(options: Partial<ConnectOptions>): void {
  database = connect({ connectionString: proxy.connectionString, businessPoolSize: 1, storePoolSize: 1, ...options });
}

const write = (tx: Tx, id: number, text = `note ${String(id)}`) =>
  tx.$executeRawUnsafe('INSERT INTO note (id, text) VALUES ($1, $2)', id, text);
const last = (tx: Tx, id: number) =>
  tx.$queryRawUnsafe(`${SENT_WITH_COMMIT} INSERT INTO note (id, text) VALUES ($1, 'last') RETURNING id`, id);
const inTransaction = <R>(work: (tx: Tx) => Promise<R>, isolationLevel?: Prisma.TransactionIsolationLevel) =>
  way(database).$transaction(work, { ...(isolationLevel === undefined ? {} : { isolationLevel }), isIdle: () => true });
const notes = async () => (await base.rows<{ id: number }>('SELECT id FROM note ORDER BY id')).map(({ id }) => id);
const sqlState = (originalCode: string) => ({ meta: { driverAdapterError: { cause: { originalCode } } } });

/** Runs it often enough that its statements are prepared, and forgets what that took. */
async function afterWarmUp(work: (id: number) => Promise<unknown>): Promise<void> {
  await work(1);
  await work(2);
  proxy.forget();
  await work(3);
}

describe.each(TRANSACTION_WAYS)('a transaction %s', (_, chosen) => {
  beforeAll(() => {
    way = chosen;
  });

  it('that runs no statement asks the server nothing', async () => {
    await database.business.$queryRawUnsafe('SELECT 1');
    proxy.forget();

    expect(await inTransaction(() => Promise.resolve('done'))).toBe('done');
    await expect(inTransaction(() => Promise.reject(new Error('thrown')))).rejects.toThrow('thrown');

    expect(proxy.roundTrips()).toEqual([]);
  });

  it('begins with its first statement, in one round trip', async () => {
    await afterWarmUp((id) =>
      inTransaction(async (tx) => {
        await write(tx, id * 10);
        await write(tx, id * 10 + 1);
      }),
    );

    expect(proxy.roundTrips()).toEqual([BEGIN + PREPARED, PREPARED, COMMIT]);
    expect(await notes()).toEqual([10, 11, 20, 21, 30, 31]);
  });

  it('is one transaction, rolled back as a whole', async () => {
    const thrown = inTransaction(async (tx) => {
      await write(tx, 1);
      await write(tx, 2);
      throw new Error('thrown');
    });

    await expect(thrown).rejects.toThrow('thrown');
    expect(await notes()).toEqual([]);
  });

  it('takes its isolation level along', async () => {
    await database.business.$queryRawUnsafe('SELECT 1');
    proxy.forget();

    const level = await inTransaction(
      (tx) => tx.$queryRawUnsafe<{ level: string }[]>(`SELECT current_setting('transaction_isolation') AS level`),
      'Serializable',
    );

    expect(level).toEqual([{ level: 'serializable' }]);
    expect(proxy.roundTrips()).toEqual([`${BEGIN}PBDES`, COMMIT]);
  });

  it('takes statements that are started together', async () => {
    const thrown = inTransaction(async (tx) => {
      await Promise.all([write(tx, 1), write(tx, 2), write(tx, 3)]);
      throw new Error('thrown');
    });
    await expect(thrown).rejects.toThrow('thrown');
    await inTransaction((tx) => Promise.all([write(tx, 4), write(tx, 5)]));

    expect(await notes()).toEqual([4, 5]);
  });

  it('gets the error of its first statement, and the connection goes on', async () => {
    await write(database.business, 1);

    await expect(inTransaction((tx) => write(tx, 1))).rejects.toMatchObject(sqlState('23505'));
    await inTransaction((tx) => write(tx, 2));

    expect(await notes()).toEqual([1, 2]);
  });

  it('does not take a first statement for prepared whose text the server refused', async () => {
    const writeLater = (tx: Tx) => tx.$executeRawUnsafe('INSERT INTO later (id) VALUES ($1)', 1);
    await expect(inTransaction(writeLater)).rejects.toMatchObject(sqlState('42P01'));
    await base.rows('CREATE TABLE later (id int)');

    await inTransaction(writeLater);

    expect(await base.count('later')).toBe(1);
  });

  it('whose statement failed and was ignored rejects at its COMMIT, which Postgres reports as done', async () => {
    await write(database.business, 1);

    const swallowed = inTransaction(async (tx) => {
      await write(tx, 2);
      await write(tx, 1).catch(() => undefined);
    });

    await expect(swallowed).rejects.toMatchObject({ cause: { originalCode: '25P02' } });
    expect(await notes()).toEqual([1]);
  });

  it('gets what its COMMIT finds wrong', async () => {
    await write(database.business, 1, 'twice');

    await expect(inTransaction((tx) => write(tx, 2, 'twice'))).rejects.toMatchObject({
      cause: { originalCode: '23505' },
    });
    expect(await notes()).toEqual([1]);
  });

  it.each([1, 2])('waits for a connection where %s are shared by twenty', async (businessPoolSize) => {
    await database.close();
    open({ businessPoolSize });
    const ids = Array.from({ length: 20 }, (_, id) => id);

    await Promise.all(
      ids.map((id) =>
        inTransaction(async (tx) => {
          await write(tx, id);
          if (id % 2 === 1) throw new Error('thrown');
        }).catch(() => undefined),
      ),
    );

    expect(await notes()).toEqual(ids.filter((id) => id % 2 === 0));
  });
});

describe.each(TRANSACTION_WAYS)('a statement that is sent with COMMIT, in a transaction %s', (_, chosen) => {
  beforeAll(() => {
    way = chosen;
  });

  it('goes in one round trip with it', async () => {
    await afterWarmUp((id) =>
      inTransaction(async (tx) => {
        await write(tx, id * 10);
        await tx.$executeRawUnsafe(
          `${SENT_WITH_COMMIT} UPDATE note SET text = 'ended' || $1 WHERE id = $1::int`,
          String(id * 10),
        );
      }),
    );

    expect(proxy.roundTrips()).toEqual([BEGIN + PREPARED, PREPARED + COMMIT]);
    expect(await base.rows('SELECT text FROM note WHERE id = 30')).toEqual([{ text: 'ended30' }]);
  });

  it('goes with BEGIN too, where there is no other', async () => {
    await afterWarmUp((id) =>
      inTransaction((tx) =>
        tx.$executeRawUnsafe(`${SENT_WITH_COMMIT} INSERT INTO note (id, text) VALUES ($1, $2)`, id, String(id)),
      ),
    );

    expect(proxy.roundTrips()).toEqual([BEGIN + PREPARED + COMMIT]);
    expect(await notes()).toEqual([1, 2, 3]);
  });

  it('that fails is what COMMIT rejects with, and nothing stays', async () => {
    const failed = inTransaction(async (tx) => {
      await write(tx, 1);
      await last(tx, 1);
    });

    await expect(failed).rejects.toMatchObject({ cause: { originalCode: '23505' } });
    expect(await notes()).toEqual([]);
    await inTransaction((tx) => write(tx, 2));
    expect(await notes()).toEqual([2]);
  });

  it('is not run where the transaction rolls back', async () => {
    const thrown = inTransaction(async (tx) => {
      await last(tx, 1);
      throw new Error('thrown');
    });

    await expect(thrown).rejects.toThrow('thrown');
    expect(await notes()).toEqual([]);
  });

  it('is sent in its place where another follows', async () => {
    const seen = await inTransaction(async (tx) => {
      await last(tx, 1);
      return tx.$queryRawUnsafe('SELECT id FROM note');
    });

    expect(seen).toEqual([{ id: 1 }]);
  });

  it('does not hide that a statement before it failed', async () => {
    await write(database.business, 1);
    const swallowed = inTransaction(async (tx) => {
      await write(tx, 1).catch(() => undefined);
      await last(tx, 2);
    });

    await expect(swallowed).rejects.toMatchObject({ cause: { originalCode: '25P02' } });
    expect(await notes()).toEqual([1]);
  });
});

describe('a BEGIN that fails', () => {
  it('takes all statements with it, and the connection is closed', async () => {
    const pool = createTransactionPool({ connectionString: base.connectionString, max: 1 }, BOUNDS);
    pool.on('error', () => undefined);
    const transaction = await pool.connect();
    const run = (text: string) => transaction.query({ text, rowMode: 'array' });
    await run('BEGIN');
    await run('SET TRANSACTION ISOLATION LEVEL NONSENSE');

    const ended = await Promise.allSettled([
      transaction.query({ name: 'insert', text: 'INSERT INTO note (id) VALUES ($1)', values: [1], rowMode: 'array' }),
      run('INSERT INTO note (id) VALUES (2)'),
    ]);
    await run('ROLLBACK');
    transaction.release();

    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await notes()).toEqual([]);
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });
});

test('a transaction that has ended takes no statement', async () => {
  const pool = createTransactionPool({ connectionString: base.connectionString, max: 1 }, BOUNDS);
  const transaction = await pool.connect();
  await transaction.query({ text: 'COMMIT', rowMode: 'array' });

  await expect(transaction.query({ text: 'SELECT 1', rowMode: 'array' })).rejects.toThrow('has ended');
  transaction.release();
  await pool.end();
});

test('a connection that is released within a transaction does not go back to the pool', async () => {
  const pool = createTransactionPool({ connectionString: base.connectionString, max: 1 }, BOUNDS);
  const transaction = await pool.connect();
  await transaction.query({ text: 'INSERT INTO note (id) VALUES (1)', rowMode: 'array' });
  transaction.release();

  expect(pool.totalCount).toBe(0);
  await pool.end();
  expect(await notes()).toEqual([]);
});
