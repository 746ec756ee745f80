import { newRequestId, type SqlClient } from '../../src/idempotency/index';
import { createRelay } from '../../src/outbox/relay';
import type { RelayOptions } from '../../src/outbox/relay-options';
import { deferred } from '../support/deferred';
import { openTestOutbox, storedEvents, type TestOutbox } from '../support/outbox';
import { until } from '../support/until';

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

const undelivered = async () => (await storedEvents(outbox)).filter(({ state }) => state !== 'delivered').length;

/** The client of the relay, with every statement seen before it is sent. */
function watching(onStatement: (text: string) => void): SqlClient {
  return {
    $queryRawUnsafe: (text, ...values) => {
      onStatement(text);
      return outbox.connections.business.$queryRawUnsafe(text, ...values);
    },
  };
}
const TAKES = 'FOR UPDATE SKIP LOCKED';
const isTake = (text: string) => text.includes(TAKES) && text.includes("state = 'waiting' AND due_at <= now()");

describe('a round', () => {
  it('takes what relays that died have left, each of two relays its own: 500 events, each delivered once (case L3)', async () => {
    const made = Array.from({ length: 500 }, () => newRequestId());
    await outbox.database.rows(
      `WITH event AS (
        SELECT id, n, nextval('outbox_position') AS position FROM unnest($1::uuid[]) WITH ORDINALITY AS made (id, n)
      ),
      aggregate AS (
        INSERT INTO outbox_aggregates (aggregate_type, aggregate_id, last_position, state, claim_token, due_at)
        SELECT 'payment', 'p-' || n, position, 'waiting', gen_random_uuid(), now() - interval '1 second' FROM event
      )
      INSERT INTO outbox_events (position, event_id, aggregate_type, aggregate_id, type, payload, headers)
      SELECT position, id, 'payment', 'p-' || n, 'stale', '', '{}' FROM event`,
      [made],
    );
    const relays = [outbox.relay(), outbox.relay()];
    await Promise.all(
      relays.map(async (relay) => {
        while ((await relay.runOnce()).taken > 0);
      }),
    );
    const ids = relays.flatMap(({ delivered }) => delivered.map(({ id }) => id));
    expect([...ids].sort()).toEqual(made);
    expect(await undelivered()).toBe(0);
  });

  it('gives back what it could not begin within its lease, without an attempt', async () => {
    for (let n = 0; n < 3; n += 1) await outbox.add({ aggregateId: `p-${n}` });
    const relay = outbox.relay({
      ...{ parallel: 1, leaseMs: 210, deliveryTimeoutMs: 200 },
      deliver: () => new Promise((resolve) => setTimeout(resolve, 30)),
    });
    expect((await relay.runOnce()).taken).toBe(3);
    expect(relay.delivered.length).toBeLessThan(3);
    const left = (await storedEvents(outbox)).filter(({ state }) => state === 'pending');
    expect(left.length).toBeGreaterThan(0);
    expect(left.every(({ attempts }) => attempts === 0)).toBe(true);
    // At once, not at the end of the lease.
    expect((await outbox.relay().runOnce()).delivered).toBe(left.length);
  });

  it('goes on where an outcome could not be noted; that event is delivered again after the lease', async () => {
    await outbox.add({ aggregateId: 'p-1' });
    await outbox.add({ aggregateId: 'p-2' });
    let broken = 0;
    const client: SqlClient = {
      $queryRawUnsafe: (text, ...values) => {
        if (text.includes('delivered_at = now()') && values.includes('p-1') && (broken += 1) === 1) {
          return Promise.reject(new Error('connection lost'));
        }
        return outbox.connections.business.$queryRawUnsafe(text, ...values);
      },
    };
    const relay = outbox.relay({ client, leaseMs: 300, deliveryTimeoutMs: 200 });
    expect(await relay.runOnce()).toMatchObject({ taken: 2, delivered: 1 });
    expect(relay.told).toContainEqual({ type: 'fault', step: 'mark', error: new Error('connection lost') });
    await until('the lease is over', async () => (await relay.runOnce()).delivered === 1);
    expect(relay.delivered.map(({ aggregateId }) => aggregateId).sort()).toEqual(['p-1', 'p-1', 'p-2']);
    expect(new Set(relay.delivered.map(({ id }) => id)).size).toBe(2);
    expect(await undelivered()).toBe(0);
  });

  it('has no transaction open while it delivers', async () => {
    await outbox.add();
    const open = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE 'grpc-idempotency%' AND xact_start IS NOT NULL`;
    let transactions: unknown[] = ['not looked'];
    const relay = outbox.relay({
      deliver: async () => {
        transactions = await outbox.database.rows(open);
      },
    });
    await relay.runOnce();
    expect(transactions).toEqual([]);
  });

  it('delivers what was added: bytes, headers, and where it comes from', async () => {
    const id = await outbox.add({ payload: Buffer.from([0, 255]), headers: { traceparent: 'x y' }, type: 'paid' });
    const relay = outbox.relay();
    await relay.runOnce();
    expect(relay.delivered).toEqual([
      {
        ...{ id, aggregateType: 'payment', aggregateId: 'p-1', type: 'paid' },
        ...{ payload: new Uint8Array([0, 255]), headers: { traceparent: 'x y' } },
      },
    ]);
  });
});

describe('a running relay', () => {
  it('delivers what is there and what is added, and is woken by a hint', async () => {
    const arrived = [deferred(), deferred()];
    await outbox.add({ aggregateId: 'p-0' });
    let isIdle = deferred();
    const relay = outbox.relay({
      client: watching((text) => {
        if (isTake(text)) isIdle.resolve();
      }),
      // Only the hint ends a wait in time.
      ...{ idleMs: 600_000, maxIdleMs: 600_000 },
      deliver: ({ aggregateId }) => Promise.resolve(arrived[Number(aggregateId.slice(2))]?.resolve()),
    });
    relay.start();
    try {
      await arrived[0]?.promise;
      isIdle = deferred();
      await isIdle.promise;
      await outbox.add({ aggregateId: 'p-1' });
      relay.wake();
      await arrived[1]?.promise;
    } finally {
      await relay.stop();
    }
    expect(await undelivered()).toBe(0);
  });

  it('looks less and less often while there is nothing to do (case L4)', async () => {
    const takes: number[] = [];
    const enough = deferred();
    const relay = outbox.relay({
      client: watching((text) => {
        if (isTake(text) && takes.push(performance.now()) === 6) enough.resolve();
      }),
      ...{ idleMs: 20, maxIdleMs: 80 },
    });
    relay.start();
    await enough.promise;
    await relay.stop();
    const waits = takes.slice(1).map((at, index) => at - (takes[index] ?? NaN));
    // Timers may be a millisecond early.
    [20, 40, 80, 80, 80].forEach((ms, index) => expect(waits[index]).toBeGreaterThanOrEqual(ms - 2));
  });

  it('outlives a database that is away, tells so, and does not hammer it', async () => {
    await outbox.add();
    const times: number[] = [];
    const done = deferred();
    const relay = outbox.relay({
      client: {
        $queryRawUnsafe: (text, ...values) => {
          if (isTake(text)) {
            times.push(performance.now());
            if (times.length <= 3) return Promise.reject(new Error('away'));
          }
          return outbox.connections.business.$queryRawUnsafe(text, ...values);
        },
      },
      ...{ idleMs: 20, maxIdleMs: 40 },
      deliver: () => Promise.resolve(done.resolve()),
    });
    relay.start();
    await done.promise;
    await relay.stop();
    expect(relay.told.filter(({ type }) => type === 'fault')).toHaveLength(3);
    expect((times[3] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(20 + 40 + 40 - 6);
    expect(await undelivered()).toBe(0);
  });

  it('that is stopped finishes what it has begun, begins nothing more, and gives the rest back', async () => {
    for (let n = 0; n < 4; n += 1) await outbox.add({ aggregateId: `p-${n}` });
    const asked = deferred();
    const answer = deferred();
    const relay = outbox.relay({
      parallel: 1,
      deliver: async () => {
        asked.resolve();
        await answer.promise;
      },
    });
    relay.start();
    await asked.promise;
    let isStopped = false;
    const stopped = relay.stop().then(() => (isStopped = true));
    await outbox.database.rows('SELECT 1');
    expect(isStopped).toBe(false);
    answer.resolve();
    await stopped;
    expect(relay.delivered).toHaveLength(1);
    expect(await outbox.database.rows('SELECT 1 FROM outbox_aggregates WHERE claim_token IS NOT NULL')).toEqual([]);
    expect((await outbox.relay().runOnce()).delivered).toBe(3);
  });

  it('is started once', async () => {
    const relay = outbox.relay();
    relay.start();
    expect(() => relay.start()).toThrow('the relay was started before');
    await relay.stop();
  });
});

describe('upkeep', () => {
  it('deletes delivered events after their retention, in batches, and nothing else', async () => {
    await outbox.database.rows(`
      INSERT INTO outbox_events (position, event_id, aggregate_type, aggregate_id, type, payload, headers, state, delivered_at)
      SELECT n, gen_random_uuid(), 'payment', 'old', 'old', '', '{}', 'delivered', now() - interval '8 days' + n * interval '1 ms'
      FROM generate_series(1, 2500) AS n`);
    const waiting = await outbox.add({ aggregateId: 'waits' });
    await outbox.add({ aggregateId: 'young' });
    await outbox
      .relay({
        deliver: ({ aggregateId }) => (aggregateId === 'young' ? Promise.resolve() : Promise.reject(new Error('no'))),
      })
      .runOnce();
    await outbox.database.rows(`UPDATE outbox_events SET created_at = now() - interval '9 days'`);
    const relay = outbox.relay();
    await relay.upkeep();
    expect(relay.told).toContainEqual({ type: 'purged', events: 2_500 });
    const left = await storedEvents(outbox);
    expect(left.map(({ aggregate_id }) => aggregate_id).sort()).toEqual(['waits', 'young']);
    const [observed] = relay.told.flatMap((told) => (told.type === 'observed' ? [told.observation] : []));
    expect(observed).toMatchObject({ pending: 1, parked: 0 });
    expect(observed?.oldestAgeMs).toBeGreaterThanOrEqual(9 * 86_400_000);
    expect(left.find(({ event_id }) => event_id === waiting)?.state).toBe('pending');
  });

  it.each([
    [
      'takes',
      `state = 'waiting' AND due_at <= now() ORDER BY due_at LIMIT 100`,
      'outbox_aggregates',
      'outbox_aggregates_due',
    ],
    [
      'purges',
      `state = 'delivered' AND delivered_at <= now() - interval '7 days' ORDER BY delivered_at LIMIT 1000`,
      'outbox_events',
      'outbox_events_delivered',
    ],
    [
      'finds the head',
      `aggregate_type = 'payment' AND aggregate_id = 'p' AND state <> 'delivered' ORDER BY position LIMIT 1`,
      'outbox_events',
      'outbox_events_undelivered',
    ],
  ])('%s by an index', async (_, condition, table, index) => {
    const client = await outbox.database.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('SET LOCAL enable_seqscan = off');
      const { rows } = await client.query<Record<string, string>>(`EXPLAIN SELECT 1 FROM ${table} WHERE ${condition}`);
      const plan = rows.map((row) => Object.values(row)[0]).join('\n');
      expect(plan).toContain(`using ${index}`);
      expect(plan).not.toContain('Sort');
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
});

it('a relay is refused with what is wrong with its options', () => {
  const { business: client } = outbox.connections;
  const deliver = () => Promise.resolve();
  const make = (options: Partial<RelayOptions>) => () => createRelay({ client, deliver, ...options });
  expect(make({ batchSize: 0, maxAttempts: 1.5, idleMs: NaN })).toThrow(
    'relay options: batchSize: expected a whole number from 1 on; maxAttempts: expected a whole number from 1 on; idleMs: expected milliseconds, more than 0',
  );
  expect(make({ leaseMs: 10_000 })).toThrow('leaseMs: expected more than deliveryTimeoutMs');
  expect(make({})).not.toThrow();
});
