import { randomUUID } from 'node:crypto';
import { connect, type Database } from '../../src/database/connect';
import type { Prisma } from '../../src/gen/prisma/client';
import type { TransactionOptions } from '../../src/idempotency/index';
import { isOutage, provesRollback } from '../../src/idempotency/store/database-error';
import { deferred } from '../support/deferred';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

type Tx = Prisma.TransactionClient;

let base: TestDatabase;
let database: Database;

beforeAll(async () => {
  base = await createTestDatabase();
  await base.rows('CREATE TABLE note (id int PRIMARY KEY)');
});
afterAll(() => base.drop());
beforeEach(async () => {
  await base.rows('TRUNCATE note');
  database = connect({ connectionString: base.connectionString, businessPoolSize: 1 });
});
afterEach(() => database.close());

const write = (tx: Tx, id: number) => tx.$executeRawUnsafe('INSERT INTO note (id) VALUES ($1)', id);
const idle = { isIdle: () => true };
const transact = <R>(work: (tx: Tx) => Promise<R>, options: TransactionOptions = idle) =>
  database.transactions.$transaction(work, options);
const notes = async () => (await base.rows<{ id: number }>('SELECT id FROM note ORDER BY id')).map(({ id }) => id);
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

const paymentOf = (orderId: string) => ({
  ...{ paymentId: randomUUID(), scope: 'account-1', orderId, amountMinor: 100n, currency: 'EUR', paymentMethod: 'tok' },
  ...{ state: 'authorized', authorizationId: 'a', etag: randomUUID() },
});

describe('a transaction on a client that is bound to its connection', () => {
  it('has models, whose errors are those of Prisma', async () => {
    const payment = paymentOf('order-1');
    await transact((tx) => tx.payment.create({ data: payment }));

    const twice = transact((tx) => tx.payment.create({ data: payment }));

    await expect(twice).rejects.toMatchObject({ name: 'PrismaClientKnownRequestError', code: 'P2002' });
    expect(await base.count('payments')).toBe(1);
  });

  it('rolls back an operation of several statements with all the rest', async () => {
    const thrown = transact(async (tx) => {
      await tx.payment.createManyAndReturn({ data: [paymentOf('order-2'), paymentOf('order-3')] });
      await tx.payment.updateManyAndReturn({ where: { orderId: 'order-2' }, data: { currency: 'USD' } });
      throw new Error('thrown');
    });

    await expect(thrown).rejects.toThrow('thrown');
    expect(await base.count(`payments WHERE order_id IN ('order-2', 'order-3')`)).toBe(0);
  });

  it('does not lend its client to another one while something that it started may still come', async () => {
    let left: Tx | undefined;
    const leave = async (tx: Tx): Promise<void> => {
      left = tx;
      await write(tx, 1);
    };
    await transact(leave, { isIdle: () => false });

    await transact(async (tx) => {
      await write(tx, 2);
      await expect(write(left as Tx, 3)).rejects.toMatchObject({ code: 'P2028' });
    });

    expect(await notes()).toEqual([1, 2]);
  });

  it('does not where nobody says that nothing may come', async () => {
    let left: Tx | undefined;
    await transact((tx) => Promise.resolve((left = tx)), {});
    await transact(async () => {
      await expect(write(left as Tx, 1)).rejects.toMatchObject({ code: 'P2028' });
    });
    expect(await notes()).toEqual([]);
  });

  it('runs nothing after its end, whether it was committed or rolled back', async () => {
    const used: Tx[] = [];
    await transact((tx) => Promise.resolve(used.push(tx)));
    await errorOf(transact((tx) => Promise.reject(new Error(String(used.push(tx))))));

    for (const tx of used) await expect(write(tx, 1)).rejects.toMatchObject({ code: 'P2028' });
    expect(await notes()).toEqual([]);
  });

  it('that gets no connection in its time was not begun, and gives back the one that comes later', async () => {
    const proceed = deferred();
    const holder = transact(async (tx) => {
      await write(tx, 1);
      await proceed.promise;
    });
    const late = await errorOf(transact((tx) => write(tx, 2), { ...idle, maxWait: 50 }));
    proceed.resolve();
    await holder;

    expect(late).toMatchObject({ code: 'P2028', meta: { operation: 'start' } });
    expect(isOutage(late)).toBe(true);
    await transact((tx) => write(tx, 3));
    expect(await notes()).toEqual([1, 3]);
  });

  it('whose time is over is rolled back then, though its function goes on', async () => {
    const proceed = deferred();
    let refused: unknown;
    const slow = transact(
      async (tx) => {
        await write(tx, 1);
        await proceed.promise;
        refused = await errorOf(write(tx, 2));
      },
      { ...idle, timeout: 50 },
    );
    // The only connection is free again.
    await transact((tx) => write(tx, 1));
    proceed.resolve();
    const error = await errorOf(slow);

    expect(refused).toMatchObject({ code: 'P2028' });
    expect(isOutage(refused)).toBe(true);
    expect(error).toMatchObject({ code: 'P2028', meta: { operation: 'commit' } });
    expect(provesRollback(error)).toBe(true);
    expect(await notes()).toEqual([1]);
  });

  it('may take any time that a lease may', async () => {
    const month = { maxWait: 30 * 86_400_000, timeout: 30 * 86_400_000 };
    await transact((tx) => write(tx, 1), { ...idle, ...month });
    expect(await notes()).toEqual([1]);
  });
});
