import { Prisma } from '../../src/gen/prisma/client';
import { sealable, UnfinishedStatementError } from '../../src/idempotency/server/sealed-transaction';

/** A query like Prisma's: it runs when it is awaited, and has methods that make another query of it. */
interface LazyQuery extends PromiseLike<string> {
  catch(handler: (error: unknown) => unknown): Promise<unknown>;
  finally(handler: () => void): Promise<unknown>;
  relation(): LazyQuery;
  readonly label: string;
}

/** A client like Prisma's, and the log of what it ran. */
function createClient() {
  const ran: string[] = [];
  const query = (name: string): LazyQuery => {
    const run = (): Promise<string> => {
      ran.push(name);
      return name.includes('fail') ? Promise.reject(new Error(name)) : Promise.resolve(name);
    };
    return {
      label: name,
      then: (...handlers) => run().then(...handlers),
      catch: (handler) => run().catch(handler),
      finally: (handler) => run().finally(handler),
      relation: () => query(`${name}.relation`),
    };
  };
  const client = {
    order: { find: () => query('find'), fail: () => query('fail'), fields: { id: 'id' } },
    $queryRaw: () => query('raw'),
    version: () => 7,
    nothing: null,
  };
  return { client, ran };
}

describe('a transaction client that can be sealed', () => {
  it('is sealed without complaint when every statement was awaited', async () => {
    const { client, ran } = createClient();
    const { tx, seal } = sealable(client);

    expect(await tx.order.find()).toBe('find');
    expect(await Promise.all([tx.$queryRaw(), tx.order.find()])).toEqual(['raw', 'find']);
    await expect(tx.order.fail()).rejects.toThrow('fail');
    expect(await tx.order.fail().catch(() => 'caught')).toBe('caught');
    expect(await tx.$queryRaw().finally(() => undefined)).toBe('raw');

    expect(seal).not.toThrow();
    expect(ran).toEqual(['find', 'raw', 'find', 'fail', 'fail', 'raw']);
  });

  it('runs a statement once, however often it is asked for', async () => {
    const { client, ran } = createClient();
    const { tx, seal } = sealable(client);

    const query = tx.order.find();
    await Promise.all([query, query, query.finally(() => undefined)]);

    expect(ran).toEqual(['find']);
    expect(seal).not.toThrow();
  });

  it('passes on what is not a statement', () => {
    const { client } = createClient();
    const { tx, seal } = sealable(client);

    expect([tx.version(), tx.nothing, tx.order.fields.id, tx.order.fields]).toEqual([7, null, 'id', { id: 'id' }]);
    expect(tx.order.find().label).toBe('find');
    expect(seal).toThrow(UnfinishedStatementError);
  });

  it('names every statement that was made and never run', () => {
    const { client, ran } = createClient();
    const { tx, seal } = sealable(client);

    void tx.order.find();
    void tx.$queryRaw();

    expect(seal).toThrow(new UnfinishedStatementError(['order.find', '$queryRaw']));
    expect(ran).toEqual([]);
  });

  it('names a statement that was started and is not done, whether it will fail or not', () => {
    for (const name of ['find', 'fail'] as const) {
      const { client } = createClient();
      const { tx, seal } = sealable(client);

      void tx.order[name]().then(() => undefined);

      expect(seal).toThrow(new UnfinishedStatementError([`order.${name}`]));
    }
  });

  it('leaves nobody with an unhandled rejection of a statement that was walked away from', async () => {
    const { client } = createClient();
    const { tx } = sealable(client);

    void tx.order.fail().then(() => undefined);
    void tx.order.fail().finally(() => undefined);

    // Node tells of unhandled rejections after the microtasks, and the runner then fails this test.
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('still tells who waits that a statement failed, and does not hide what a handler of it throws', async () => {
    const { client } = createClient();
    const { tx } = sealable(client);

    await expect(tx.order.fail().then(() => 'fine')).rejects.toThrow('fail');
    await expect(
      tx.order.find().then(() => {
        throw new Error('of the handler');
      }),
    ).rejects.toThrow('of the handler');
  });

  it('counts a query made of another as that one alone', async () => {
    const { client, ran } = createClient();
    const { tx, seal } = sealable(client);

    expect(await tx.order.find().relation()).toBe('find.relation');

    expect(ran).toEqual(['find.relation']);
    expect(seal).not.toThrow();
  });

  it('names a query made of another that was not run', () => {
    const { client } = createClient();
    const { tx, seal } = sealable(client);

    void tx.order.find().relation();

    expect(seal).toThrow(new UnfinishedStatementError(['order.find.relation']));
  });

  it('runs nothing once sealed: no new statement, none of a kept model, none made before', async () => {
    const { client, ran } = createClient();
    const { tx, seal } = sealable(client);
    const { order } = tx;
    const made = tx.$queryRaw();
    expect(seal).toThrow(UnfinishedStatementError);

    // Rejections: what a timer starts too late has nobody to catch what it throws.
    await expect(tx.$queryRaw()).rejects.toThrow(
      "$queryRaw after the transaction's function had returned; it was not run",
    );
    await expect(order.find()).rejects.toThrow('order.find after');
    await expect(made).rejects.toThrow('$queryRaw after');
    expect(ran).toEqual([]);
  });
});

describe('a transaction client inside complete', () => {
  it('offers raw queries and models, and nothing that leads around the count', () => {
    const inner = { $transaction: () => 'raw client', $extends: () => 'raw client', $parent: {}, $queryRaw: () => 1 };
    const { tx } = sealable(inner);

    expect(() => tx.$transaction()).toThrow('$transaction is not offered inside complete');
    expect(() => tx.$extends()).toThrow('$extends is not offered inside complete');
    expect(tx.$parent).toBeUndefined();
    expect(tx.$queryRaw()).toBe(1);
  });
});

describe('a raw text inside complete', () => {
  /** Takes raw texts in every form that Prisma does, and notes what got through. */
  function createRawClient() {
    const ran: unknown[] = [];
    const run = (...values: unknown[]) => Promise.resolve(ran.push(values[0]));
    const client = {
      $executeRaw: run,
      $executeRawUnsafe: run,
      $queryRaw: run,
      $queryRawUnsafe: run,
      $queryRawTyped: run,
    };
    return { tx: sealable(client).tx, ran };
  }

  it.each([
    ['COMMIT', 'COMMIT'],
    ['commit and chain', 'COMMIT'],
    [' \t\n\r\f\v End', 'END'],
    ['rollback;', 'ROLLBACK'],
    ['ROLLBACK AND CHAIN', 'ROLLBACK'],
    ['rollback work', 'ROLLBACK'],
    ["ROLLBACK PREPARED 'to'", 'ROLLBACK'],
    ['ABORT', 'ABORT'],
    ['begin', 'BEGIN'],
    ['START TRANSACTION', 'START TRANSACTION'],
    ["prepare /* a */ transaction 'x'", 'PREPARE TRANSACTION'],
    ['-- sent\n--again\r/* a /* nested */ comment */COMMIT', 'COMMIT'],
    ['COMMIT--at the end', 'COMMIT'],
    ['COMMIT/**/', 'COMMIT'],
    ['; ;COMMIT', 'COMMIT'],
    ['ROLLBACK -- TO\n WORK', 'ROLLBACK'],
  ])('is refused where it says %j', (text, named) => {
    const { tx, ran } = createRawClient();
    const refused = `${named} is not offered inside complete`;

    expect(() => tx.$executeRawUnsafe(text, 1)).toThrow(refused);
    expect(() => tx.$queryRawUnsafe(text)).toThrow(refused);
    expect(() => tx.$executeRaw(Object.assign([text], { raw: [text] }))).toThrow(refused);
    expect(() => tx.$queryRaw(Prisma.raw(text))).toThrow(refused);
    expect(() => tx.$executeRaw`${Prisma.raw(text)}`).toThrow(refused);
    expect(() => tx.$queryRaw(Prisma.sql`${Prisma.empty} ${Prisma.raw(text)}`)).toThrow(refused);
    expect(() => tx.$queryRawTyped({ sql: text, values: [] })).toThrow(refused);
    expect(ran).toEqual([]);
  });

  it.each([
    "INSERT INTO note VALUES ('COMMIT')",
    'SELECT 1 -- COMMIT',
    '/* COMMIT */ SELECT 1',
    '-- COMMIT\nSELECT 1',
    'SAVEPOINT commit',
    'RELEASE SAVEPOINT a',
    'ROLLBACK TO a',
    'rollback /* all */ work to SAVEPOINT a',
    'ROLLBACK TRANSACTION TO a',
    'PREPARE plan AS SELECT 1',
    'committed',
    'END_OF',
    '',
    '/* never closed COMMIT',
  ])('is run where it says %j', async (text) => {
    const { tx, ran } = createRawClient();

    await tx.$executeRawUnsafe(text);
    await tx.$queryRaw(Prisma.raw(text));
    await tx.$executeRaw`SELECT ${'COMMIT'}`;

    expect(ran).toHaveLength(3);
  });
});

describe('a transaction client whose statements do not wait to be awaited', () => {
  it('runs nothing once sealed either', async () => {
    const ran: string[] = [];
    const client = {
      order: {
        create: (): Promise<void> => {
          ran.push('create');
          return Promise.resolve();
        },
      },
    };
    const { tx, close } = sealable(client);
    close();

    await expect(tx.order.create()).rejects.toThrow('order.create after');
    expect(ran).toEqual([]);
  });
});
