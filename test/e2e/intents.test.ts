import { connect } from '../../src/database/connect';
import { createIntents, type IntentOptions, OpenTransactionError } from '../../src/idempotency/index';
import { type CallersDatabase, createCallersDatabase, dateOfKey } from '../support/intents';

const HOUR_MS = 3_600_000;

let callers: CallersDatabase;

beforeAll(async () => {
  callers = await createCallersDatabase();
});

afterAll(() => callers.close());

describe('requestIdFor', () => {
  it('makes a UUIDv7 once and finds it ever after, also from another process', async () => {
    const draft = callers.newDraft();
    const first = await callers.intents().requestIdFor('pay', draft);
    expect(first).toMatchObject({ kind: 'usable', intent: 'pay', draftId: draft });
    expect(await callers.intents().requestIdFor('pay', draft)).toEqual(first);
    expect(await callers.database.count(`idempotency_intent WHERE draft_id = '${draft}'`)).toBe(1);
  });

  it('keeps apart what differs by producer, intent or draft', async () => {
    const draft = callers.newDraft();
    const outcomes = [
      await callers.intents().requestIdFor('pay', draft),
      await callers.intents().requestIdFor('refund', draft),
      await callers.intents().requestIdFor('pay', `${draft} `),
      await callers.intents().requestIdFor('pay', draft.toUpperCase()),
      await callers.intents({ producer: 'billing' }).requestIdFor('pay', draft),
    ];
    expect(new Set(outcomes.map(({ requestId }) => requestId)).size).toBe(outcomes.length);
  });

  it('dates the key by the database, to the millisecond of the row', async () => {
    const draft = callers.newDraft();
    const outcome = await callers.intents().requestIdFor('pay', draft);
    const [row] = await callers.database.rows<{ ms: number }>(
      'SELECT (extract(epoch FROM created_at) * 1000)::float8 AS ms FROM idempotency_intent WHERE draft_id = $1',
      [draft],
    );
    expect(dateOfKey(outcome.requestId)).toBe(row?.ms);
    expect(outcome.expiresAt.getTime()).toBe(dateOfKey(outcome.requestId) + 12 * HOUR_MS);
  });

  it('makes keys that differ though the database makes them at one moment', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, () => callers.intents().requestIdFor('pay', callers.newDraft())),
    );
    expect(new Set(outcomes.map(({ requestId }) => requestId.slice(14))).size).toBe(outcomes.length);
  });

  it('says that the key is expired, rather than to make another', async () => {
    const draft = callers.newDraft();
    const made = await callers.intents().requestIdFor('pay', draft);
    await callers.expire(draft);
    for (const finished of [false, true]) {
      if (finished) await callers.intents().finish(made);
      expect(await callers.intents().requestIdFor('pay', draft)).toMatchObject({
        ...{ kind: 'expired', finished, requestId: made.requestId },
      });
    }
  });

  it('reaches the disk before it is told, whatever the session says', async () => {
    const url = new URL(callers.database.connectionString);
    url.searchParams.set('options', '-c synchronous_commit=off');
    const careless = connect({ connectionString: url.href, businessPoolSize: 1 });
    await callers.database.rows(`
      CREATE TABLE observed (durable text, patience text);
      CREATE FUNCTION observe() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO observed VALUES (current_setting('synchronous_commit'), current_setting('lock_timeout'));
        RETURN NULL;
      END $$;
      CREATE CONSTRAINT TRIGGER observe AFTER INSERT ON idempotency_intent DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION observe();`);
    try {
      await callers.intents({ client: careless.business }).requestIdFor('pay', callers.newDraft());
      expect(await callers.database.rows('SELECT * FROM observed')).toEqual([{ durable: 'on', patience: '2s' }]);
      expect(await careless.business.$queryRawUnsafe('SHOW synchronous_commit')).toEqual([
        { synchronous_commit: 'off' },
      ]);
    } finally {
      await callers.database.rows('DROP TRIGGER observe ON idempotency_intent; DROP TABLE observed');
      await careless.close();
    }
  });

  it('does not wait behind a row that is there and that somebody has in hand', async () => {
    const draft = callers.newDraft();
    const made = await callers.intents().requestIdFor('pay', draft);
    const hand = await callers.database.pool.connect();
    try {
      await hand.query('BEGIN');
      await hand.query('DELETE FROM idempotency_intent WHERE draft_id = $1', [draft]);
      expect(await callers.intents().requestIdFor('pay', draft)).toEqual(made);
    } finally {
      await hand.query('ROLLBACK');
      hand.release();
    }
  });

  it('waits two seconds at most behind one that is being made', async () => {
    const draft = callers.newDraft();
    const hand = await callers.database.pool.connect();
    try {
      await hand.query('BEGIN');
      await hand.query(
        `INSERT INTO idempotency_intent (created_at, expires_at, request_id, producer, intent, draft_id)
         VALUES (now(), now() + interval '1 hour', '01890a5d-ac96-774b-bcce-b302099a8057', 'shop', 'pay', $1)`,
        [draft],
      );
      await expect(callers.intents().requestIdFor('pay', draft)).rejects.toThrow(/lock timeout/);
    } finally {
      await hand.query('ROLLBACK');
      hand.release();
    }
    expect(await callers.intents().requestIdFor('pay', draft)).toMatchObject({ kind: 'usable' });
  });

  it('starts over when its row is removed between making and finding', async () => {
    const draft = callers.newDraft();
    let removed = 0;
    const client: IntentOptions['client'] = {
      $connect: () => callers.client.$connect(),
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        if (/^\s*SELECT request_id/.test(query) && (removed += 1) <= 3) {
          await callers.database.rows('DELETE FROM idempotency_intent WHERE draft_id = $1', [draft]);
        }
        return callers.client.$queryRawUnsafe<Rows>(query, ...values);
      },
    };
    expect(await callers.intents({ client }).requestIdFor('pay', draft)).toMatchObject({ kind: 'usable' });
    expect(removed).toBe(4);
    removed = -1_000;
    await expect(callers.intents({ client }).requestIdFor('pay', draft)).rejects.toThrow(/removed as fast/);
  });

  it('finds its own row when the answer to the making was lost', async () => {
    const draft = callers.newDraft();
    let cut = false;
    const client: IntentOptions['client'] = {
      $connect: () => callers.client.$connect(),
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        const rows = await callers.client.$queryRawUnsafe<Rows>(query, ...values);
        if (cut) return rows;
        cut = true;
        throw new Error('Connection terminated unexpectedly');
      },
    };
    const made = await callers.intents({ client }).requestIdFor('pay', draft);
    expect(cut).toBe(true);
    expect(await callers.intents().requestIdFor('pay', draft)).toEqual(made);
  });
});

describe('an open transaction', () => {
  it('gets no key, since a rollback would take it back', async () => {
    const draft = callers.newDraft();
    const inside = callers.client.$transaction(async (tx) => {
      // Hidden from TypeScript and from the look at `$connect`, as a client does that finds its transaction by itself.
      const client = { $connect: () => Promise.resolve(), $queryRawUnsafe: tx.$queryRawUnsafe.bind(tx) };
      return callers.intents({ client }).requestIdFor('pay', draft);
    });
    await expect(inside).rejects.toThrow(OpenTransactionError);
    expect(await callers.database.count(`idempotency_intent WHERE draft_id = '${draft}'`)).toBe(0);
  });

  it('is not told its own row the second time either', async () => {
    const draft = callers.newDraft();
    await callers.client.$transaction(async (tx) => {
      const client = { $connect: () => Promise.resolve(), $queryRawUnsafe: tx.$queryRawUnsafe.bind(tx) };
      const intents = callers.intents({ client });
      await expect(intents.requestIdFor('pay', draft)).rejects.toThrow(OpenTransactionError);
      await expect(intents.requestIdFor('pay', draft)).rejects.toThrow(OpenTransactionError);
    });
  });

  it('is refused as the client', async () => {
    await callers.client.$transaction(async (tx) => {
      // @ts-expect-error: the client of a transaction has no $connect
      expect(() => createIntents({ client: tx, producer: 'shop' })).toThrow(
        'client: expected a Prisma client, and not that of an open transaction',
      );
    });
  });
});
