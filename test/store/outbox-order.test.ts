import { createOutbox } from '../../src/outbox/outbox';
import { deferred } from '../support/deferred';
import { endLeases, eventOf, openTestOutbox, storedEvents, type TestOutbox, type TestRelay } from '../support/outbox';
import { until } from '../support/until';

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

/** A transaction that has added an event, and stays open until it is told how to end. */
function openTransaction(type: string, aggregateId = 'p-1') {
  const added = deferred<string>();
  const end = deferred<'commit' | 'rollback'>();
  const done = outbox.connections.business.$transaction(
    async (tx) => {
      added.resolve(await createOutbox().add(tx, eventOf({ aggregateId, type })));
      if ((await end.promise) === 'rollback') throw new Error('rolled back');
    },
    { timeout: 20_000 },
  );
  // Whoever waits for it looks at it; until then it is nobody's unhandled rejection.
  done.catch(() => undefined);
  return { added: added.promise, end: end.resolve, done };
}

/** Whether a statement waits for a lock. */
const waits = async (): Promise<boolean> => {
  const blocked = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return (await outbox.database.rows(blocked)).length > 0;
};
const types = (relay: { readonly delivered: readonly { readonly type: string }[] }) =>
  relay.delivered.map(({ type }) => type);

describe('events of one aggregate', () => {
  it('are delivered in the order of the commits: a second transaction waits with its event for the first', async () => {
    const relay = outbox.relay();
    const first = openTransaction('first');
    await first.added;
    const second = openTransaction('second');
    await until('the second waits', waits);
    expect((await relay.runOnce()).taken).toBe(0);

    first.end('commit');
    await first.done;
    await second.added;
    // The first is committed, and the second still has the aggregate in its hands.
    expect((await relay.runOnce()).taken).toBe(0);
    second.end('commit');
    await second.done;
    expect((await relay.runOnce()).delivered).toBe(1);
    expect((await relay.runOnce()).delivered).toBe(1);
    expect(types(relay)).toEqual(['first', 'second']);
    expect((await relay.runOnce()).taken).toBe(0);
  });

  it('have their places drawn behind the lock: who waits for it comes after all that its holder adds', async () => {
    const relay = outbox.relay();
    const added = deferred();
    const proceed = deferred();
    const holder = outbox.connections.business.$transaction(
      async (tx) => {
        await createOutbox().add(tx, eventOf({ type: 'first' }));
        added.resolve();
        await proceed.promise;
        await createOutbox().add(tx, eventOf({ type: 'second' }));
      },
      { timeout: 20_000 },
    );
    await added.promise;
    const waiting = openTransaction('third');
    await until('the other waits', waits);
    proceed.resolve();
    await holder;
    waiting.end('commit');
    await waiting.done;
    for (let round = 0; round < 3; round += 1) await relay.runOnce();
    expect(types(relay)).toEqual(['first', 'second', 'third']);
  });

  it('leave no gap that holds anything back when the first transaction rolls back', async () => {
    const relay = outbox.relay();
    const first = openTransaction('first');
    await first.added;
    const second = openTransaction('second');
    await until('the second waits', waits);
    first.end('rollback');
    await expect(first.done).rejects.toThrow('rolled back');
    second.end('commit');
    await second.done;
    await relay.runOnce();
    expect(types(relay)).toEqual(['second']);
  });

  it('do not hold back those of other aggregates', async () => {
    const relay = outbox.relay();
    const open = openTransaction('open', 'p-1');
    await open.added;
    await outbox.add({ aggregateId: 'p-2', type: 'other' });
    expect((await relay.runOnce()).delivered).toBe(1);
    expect(types(relay)).toEqual(['other']);
    open.end('commit');
    await open.done;
  });

  it('are not taken by a second relay while the first delivers the one before', async () => {
    await outbox.add({ type: 'first' });
    await outbox.add({ type: 'second' });
    const asked = deferred();
    const answer = deferred();
    const slow = outbox.relay({
      deliver: async () => {
        asked.resolve();
        await answer.promise;
      },
    });
    const other = outbox.relay();
    const round = slow.runOnce();
    await asked.promise;
    expect((await other.runOnce()).taken).toBe(0);
    answer.resolve();
    expect((await round).delivered).toBe(1);
    expect((await other.runOnce()).delivered).toBe(1);
    expect([...types(slow), ...types(other)]).toEqual(['first', 'second']);
  });

  it('are delivered when one is added between a delivery and its mark, and the mark waits for that', async () => {
    await outbox.add({ type: 'first' });
    const answer = deferred();
    const asked = deferred();
    const relay = outbox.relay({
      deliver: async () => {
        asked.resolve();
        await answer.promise;
      },
    });
    const round = relay.runOnce();
    await asked.promise;
    const late = openTransaction('second');
    await late.added;
    answer.resolve();
    await until('the mark waits', waits);
    late.end('commit');
    await late.done;
    expect((await round).delivered).toBe(1);
    expect((await relay.runOnce()).delivered).toBe(1);
    expect(types(relay)).toEqual(['first', 'second']);
  });

  it('do not keep a relay waiting whose aggregate is locked for long: it is delivered once more, under its id', async () => {
    const id = await outbox.add({ type: 'early' });
    const late: ReturnType<typeof openTransaction>[] = [];
    const relay = outbox.relay({
      deliver: async () => {
        if (late.length > 0) return;
        late.push(openTransaction('late'));
        await late[0]?.added;
      },
    });
    expect(await relay.runOnce()).toMatchObject({ taken: 1, delivered: 0, fenced: 0 });
    expect(relay.told).toMatchObject([{ type: 'fault', step: 'mark' }]);
    for (const { end, done } of late) {
      end('commit');
      await done;
    }
    await endLeases(outbox);
    expect((await relay.runOnce()).delivered).toBe(1);
    expect((await relay.runOnce()).delivered).toBe(1);
    expect(relay.delivered.map((event) => event.type)).toEqual(['early', 'early', 'late']);
    expect(relay.delivered.slice(0, 2).map((event) => event.id)).toEqual([id, id]);
  });

  it('are delivered when the row of their aggregate is still there and says that it is empty', async () => {
    await outbox.add({ type: 'first' });
    const { business } = outbox.connections;
    const relay = outbox.relay({
      client: {
        $queryRawUnsafe: (text, ...values) =>
          text.includes('DELETE FROM outbox_aggregates')
            ? Promise.reject(new Error('not swept'))
            : business.$queryRawUnsafe(text, ...values),
      },
    });
    expect((await relay.runOnce()).delivered).toBe(1);
    expect(relay.told).toContainEqual({ type: 'fault', step: 'sweep', error: new Error('not swept') });
    expect(await outbox.database.rows('SELECT state FROM outbox_aggregates')).toEqual([{ state: 'empty' }]);
    await outbox.add({ type: 'second' });
    await outbox.relay().runOnce();
    expect((await storedEvents(outbox)).map(({ state }) => state)).toEqual(['delivered', 'delivered']);
  });

  it('are not lost to the sweep of an aggregate that had nothing left', async () => {
    const relay = outbox.relay();
    for (let turn = 0; turn < 20; turn += 1) {
      const id = await outbox.add({ type: `turn ${turn}` });
      // A round delivers and sweeps; the next event comes at the same time.
      const [, next] = await Promise.all([relay.runOnce(), outbox.add({ type: `next ${turn}` })]);
      await relay.runOnce();
      await relay.runOnce();
      const left = (await storedEvents(outbox)).filter(({ state }) => state !== 'delivered');
      expect({ id, next, left }).toEqual({ id, next, left: [] });
    }
    expect(relay.delivered).toHaveLength(40);
    expect(await outbox.database.count('outbox_aggregates')).toBe(0);
  });

  it('stay in order when many processes add while two relays deliver', async () => {
    const relays = [outbox.relay(), outbox.relay()];
    let isAdding = true;
    const adding = Promise.all(
      Array.from({ length: 6 }, async () => {
        for (let turn = 0; turn < 10; turn += 1) await outbox.add({ aggregateId: `p-${turn % 3}` });
      }),
    ).then(() => (isAdding = false));
    const deliverAll = async (relay: TestRelay): Promise<void> => {
      for (;;) {
        const wasAdding = isAdding;
        const { taken } = await relay.runOnce();
        if (taken === 0 && !wasAdding && (await outbox.database.count('outbox_aggregates')) === 0) return;
      }
    };
    await Promise.all([adding, ...relays.map(deliverAll)]);

    const stored = await outbox.database.rows<{ event_id: string; aggregate_id: string }>(
      'SELECT event_id, aggregate_id FROM outbox_events ORDER BY aggregate_id, position',
    );
    const delivered = await outbox.database.rows<{ event_id: string; aggregate_id: string }>(
      'SELECT event_id, aggregate_id FROM outbox_events ORDER BY aggregate_id, delivered_at',
    );
    const ids = relays.flatMap((relay) => relay.delivered.map(({ id }) => id));
    expect(ids).toHaveLength(60);
    expect(new Set(ids).size).toBe(60);
    expect(delivered).toEqual(stored);
  });
});
