import { connect, type Database } from '../../src/database/connect';
import { createTransactionPool } from '../../src/database/pg-pool';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

let base: TestDatabase;
let database: Database;

beforeAll(async () => {
  base = await createTestDatabase();
  await base.rows('CREATE TABLE note (id int PRIMARY KEY)');
  database = connect({ connectionString: base.connectionString, businessPoolSize: 1, storePoolSize: 1 });
});

afterAll(async () => {
  await database.close();
  await base.drop();
});

describe('a SET TRANSACTION before the first statement', () => {
  it.each([
    ['SET TRANSACTION READ WRITE', 'serializable', 'off'],
    ['SET TRANSACTION READ ONLY', 'serializable', 'on'],
    ['SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', 'repeatable read', 'off'],
  ])('by a handler takes nothing from the isolation level that was asked for: %s', async (text, level, readOnly) => {
    const seen = await database.business.$transaction(
      async (tx) => {
        await tx.$executeRawUnsafe(text);
        return tx.$queryRaw`SELECT current_setting('transaction_isolation') AS level,
          current_setting('transaction_read_only') AS "readOnly"`;
      },
      { isolationLevel: 'Serializable' },
    );

    expect(seen).toEqual([{ level, readOnly }]);
  });

  it('adds to the one before it', async () => {
    const seen = await database.business.$transaction(async (tx) => {
      await tx.$executeRawUnsafe('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
      await tx.$executeRawUnsafe('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
      return tx.$queryRaw`SELECT current_setting('transaction_isolation') AS level,
        current_setting('transaction_read_only') AS "readOnly"`;
    });

    expect(seen).toEqual([{ level: 'serializable', readOnly: 'on' }]);
  });

  it('stands where the transaction asked for no level', async () => {
    const seen = await database.business.$transaction(async (tx) => {
      await tx.$executeRawUnsafe('SET TRANSACTION READ ONLY');
      return tx.$queryRaw`SELECT current_setting('transaction_read_only') AS "readOnly"`;
    });

    expect(seen).toEqual([{ readOnly: 'on' }]);
  });
});

it('a statement that waited for BEGIN is not run once the transaction is rolled back', async () => {
  const pool = createTransactionPool({ connectionString: base.connectionString, max: 1 }, { endWithinMs: 5_000 });
  const transaction = await pool.connect();
  const run = (text: string) => transaction.query({ text, rowMode: 'array' });

  const ended = await Promise.allSettled([
    run('SELECT pg_sleep(0.05)'),
    run('INSERT INTO note (id) VALUES (1)'),
    run('ROLLBACK'),
  ]);
  transaction.release();
  await pool.end();

  expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await base.count('note')).toBe(0);
});

it('a text of several statements is none, however many texts were seen before', async () => {
  for (let text = 0; text < 260; text += 1) await database.business.$executeRawUnsafe(`SELECT ${String(text)}`);
  const twoInOne = 'INSERT INTO note (id) VALUES (2); COMMIT';
  const first = database.business.$transaction((tx) => tx.$executeRawUnsafe(twoInOne));
  await expect(first).rejects.toThrow('multiple commands');

  const second = database.business.$transaction(async (tx) => {
    await tx.$executeRawUnsafe('INSERT INTO note (id) VALUES (3)');
    await tx.$executeRawUnsafe(twoInOne);
  });
  await expect(second).rejects.toThrow('multiple commands');

  expect(await base.count('note')).toBe(0);
});
