import { newRequestId } from '../../src/idempotency/index';
import { createRequestIds } from '../../src/idempotency/request-id';
import { listUndelivered, requeueEvent } from '../../src/outbox/requeue';
import type { RelayOptions } from '../../src/outbox/relay-options';
import { deferred } from '../support/deferred';
import { endLeases, openTestOutbox, storedEvents, type TestOutbox, type TestRelay } from '../support/outbox';
import { until } from '../support/until';

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

const HOUR_MS = 3_600_000;
const refuse: RelayOptions['deliver'] = () => Promise.reject(new Error('the consumer said no'));
/** Lets every backoff be over; those of parked ones too, which must not matter. */
const endBackoffs = () => outbox.database.rows('UPDATE outbox_aggregates SET due_at = now()');
/** Gives the only event an id of that age. */
const makeOlder = async (ms: number): Promise<string> => {
  const id = createRequestIds({ nowMs: () => Date.now() - ms })();
  await outbox.database.rows('UPDATE outbox_events SET event_id = $1', [id]);
  return id;
};
/** Statements that wait for a lock. */
const WAITING = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
const tellsOf = (relay: TestRelay) => relay.told.map((told) => told.type);

describe('a delivery that fails', () => {
  it('leaves its event waiting, with one attempt more and the reason, and comes again after a backoff (case L3)', async () => {
    const id = await outbox.add();
    const relay = outbox.relay({ deliver: refuse, initialBackoffMs: 1_000, maxBackoffMs: 60_000, random: () => 0.5 });
    for (const [index, ms] of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      const beganAtMs = performance.now();
      expect(await relay.runOnce()).toMatchObject({ taken: 1, failed: 1, delivered: 0 });
      const [row] = await outbox.database.rows<{ ms: number }>(
        'SELECT extract(epoch FROM due_at - now())::float8 * 1000 AS ms FROM outbox_aggregates',
      );
      expect(row?.ms).toBeLessThanOrEqual(ms);
      expect(row?.ms).toBeGreaterThanOrEqual(ms - (performance.now() - beganAtMs));
      const error = new Error('the consumer said no');
      expect(relay.told.at(-1)).toMatchObject({ type: 'failed', eventId: id, attempts: index + 1, error });
      expect(await storedEvents(outbox)).toMatchObject([
        { event_id: id, state: 'pending', attempts: index + 1, last_error: 'the consumer said no' },
      ]);
      await endBackoffs();
    }
  });

  it('is not repeated before its backoff is over', async () => {
    await outbox.add();
    const relay = outbox.relay({ deliver: refuse, initialBackoffMs: 60_000, maxBackoffMs: 60_000, random: () => 1 });
    await relay.runOnce();
    expect((await relay.runOnce()).taken).toBe(0);
  });

  it('is waited for by whoever adds to its aggregate: neither its backoff nor its lease ends early', async () => {
    await outbox.add({ type: 'first' });
    const relay = outbox.relay({ deliver: refuse, initialBackoffMs: 60_000, maxBackoffMs: 60_000, random: () => 1 });
    await relay.runOnce();
    await outbox.add({ type: 'second' });
    expect((await outbox.relay().runOnce()).taken).toBe(0);

    await endBackoffs();
    const asked = deferred();
    const answer = deferred();
    const holder = outbox.relay({
      deliver: async () => {
        asked.resolve();
        await answer.promise;
      },
    });
    const round = holder.runOnce();
    await asked.promise;
    await outbox.add({ type: 'third' });
    expect((await outbox.relay().runOnce()).taken).toBe(0);
    answer.resolve();
    expect((await round).delivered).toBe(1);
  });

  it('that takes too long counts as failed, is told so, and holds no other back', async () => {
    await outbox.add({ aggregateId: 'hangs' });
    await outbox.add({ aggregateId: 'works' });
    const signals: AbortSignal[] = [];
    const relay = outbox.relay({
      deliveryTimeoutMs: 100,
      parallel: 1,
      deliver: ({ aggregateId }, { signal, timeoutMs }) => {
        expect(timeoutMs).toBe(100);
        signals.push(signal);
        return aggregateId === 'hangs' ? new Promise(() => undefined) : Promise.resolve();
      },
    });
    expect(await relay.runOnce()).toMatchObject({ taken: 2, failed: 1, delivered: 1 });
    expect(signals.map(({ aborted }) => aborted).sort()).toEqual([false, true]);
    const [hanging] = (await storedEvents(outbox)).filter(({ state }) => state === 'pending');
    expect(hanging?.last_error).toBe('not confirmed within 100 ms');
  });

  it('is noted though its error is no text for Postgres', async () => {
    await outbox.add();
    const relay = outbox.relay({ deliver: () => Promise.reject(new Error(`\u0000\ud800${'x'.repeat(1_000)}`)) });
    expect((await relay.runOnce()).failed).toBe(1);
    expect((await storedEvents(outbox))[0]?.last_error).toBe(`\ufffd${'x'.repeat(499)}`);
  });

  it('holds back its aggregate only', async () => {
    await outbox.add({ aggregateId: 'bad', type: 'bad' });
    await outbox.add({ aggregateId: 'bad', type: 'behind' });
    await outbox.add({ aggregateId: 'good', type: 'good' });
    const relay = outbox.relay({
      deliver: (event, context) => (event.type === 'bad' ? refuse(event, context) : Promise.resolve()),
      maxAttempts: 2,
    });
    for (let round = 0; round < 4; round += 1) {
      await relay.runOnce();
      await endBackoffs();
    }
    expect(relay.delivered.map(({ type }) => type)).toEqual(['good']);
    expect((await storedEvents(outbox)).map(({ state }) => state)).toEqual(['parked', 'pending', 'delivered']);
    // Who adds to it later does not free it.
    await outbox.add({ aggregateId: 'bad', type: 'later' });
    expect((await relay.runOnce()).taken).toBe(0);
  });
});

describe('an event that is put aside', () => {
  it('has failed as often as it may; twelve of them at the head stop nobody (case L4)', async () => {
    for (let poison = 0; poison < 12; poison += 1)
      await outbox.add({ aggregateId: `poison-${poison}`, type: 'poison' });
    for (let good = 0; good < 50; good += 1) await outbox.add({ aggregateId: `good-${good}`, type: 'good' });
    const relay = outbox.relay({
      batchSize: 10,
      maxAttempts: 3,
      deliver: (event, context) => (event.type === 'poison' ? refuse(event, context) : Promise.resolve()),
    });
    let rounds = 0;
    for (; relay.delivered.length < 50 && rounds < 100; rounds += 1) await relay.runOnce();
    // 62 first deliveries and at most two more of each poisoned one, ten at a time.
    expect(rounds).toBeLessThanOrEqual(9);
    for (let round = 0; round < 3; round += 1) {
      await endBackoffs();
      await relay.runOnce();
      await endBackoffs();
      await relay.runOnce();
    }
    await relay.upkeep();
    expect(relay.told).toContainEqual({ type: 'observed', observation: { pending: 0, parked: 12, oldestAgeMs: 0 } });
    expect(tellsOf(relay).filter((type) => type === 'parked')).toHaveLength(12);
    expect(tellsOf(relay).filter((type) => type === 'failed')).toHaveLength(36);
    await endBackoffs();
    expect((await relay.runOnce()).taken).toBe(0);
    expect(await storedEvents(outbox)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ state: 'parked', attempts: 3, last_error: 'the consumer said no' }),
      ]),
    );
  });

  it('is too old for its consumer, and is not sent', async () => {
    await outbox.add();
    const id = await makeOlder(23 * HOUR_MS + 60_000);
    const relay = outbox.relay();
    expect(await relay.runOnce()).toMatchObject({ taken: 1, parked: 1, delivered: 0 });
    expect(relay.delivered).toEqual([]);
    expect(relay.told).toMatchObject([{ type: 'parked', reason: 'too_old', eventId: id, attempts: 0 }]);
    expect(await storedEvents(outbox)).toMatchObject([{ state: 'parked', attempts: 0 }]);
  });

  it('just before that is still sent', async () => {
    await outbox.add();
    await makeOlder(23 * HOUR_MS - 60_000);
    expect((await outbox.relay().runOnce()).delivered).toBe(1);
  });
});

describe('requeueing', () => {
  const parked = async (): Promise<string> => {
    const id = await outbox.add({ type: 'first' });
    await outbox.add({ type: 'behind' });
    expect((await outbox.relay({ deliver: refuse, maxAttempts: 1 }).runOnce()).parked).toBe(1);
    return id;
  };
  const requeue = (id: string, options?: Parameters<typeof requeueEvent>[2]) =>
    requeueEvent(outbox.connections.business, id, options);

  it('sends a parked event again under its id, with its attempts counted anew, and then those behind it', async () => {
    const id = await parked();
    expect(await requeue(id)).toEqual({ kind: 'requeued', id });
    expect(await storedEvents(outbox)).toMatchObject([{ event_id: id, state: 'pending', attempts: 0 }, {}]);
    const relay = outbox.relay();
    await relay.runOnce();
    await relay.runOnce();
    expect(relay.delivered.map(({ type }) => type)).toEqual(['first', 'behind']);
    expect(relay.delivered[0]?.id).toBe(id);
  });

  it('at the same time is done once', async () => {
    const id = await parked();
    const holder = await outbox.database.pool.connect();
    try {
      // Both have found it parked before either can change that.
      await holder.query('BEGIN');
      await holder.query('SELECT 1 FROM outbox_events FOR UPDATE');
      const outcomes = [requeue(id), requeue(id)];
      await until('both wait', async () => (await outbox.database.rows(WAITING)).length === 2);
      await holder.query('COMMIT');
      expect((await Promise.all(outcomes)).map(({ kind }) => kind).sort()).toEqual(['not_parked', 'requeued']);
    } finally {
      holder.release();
    }
  });

  it('refuses what is not parked: nothing that waits, was delivered, or never was', async () => {
    const id = await outbox.add();
    expect(await requeue(id)).toEqual({ kind: 'not_parked' });
    await outbox.relay().runOnce();
    expect(await requeue(id)).toEqual({ kind: 'not_parked' });
    expect(await requeue(newRequestId())).toEqual({ kind: 'not_parked' });
    expect(await storedEvents(outbox)).toMatchObject([{ state: 'delivered' }]);
  });

  it('refuses an id that the consumer would refuse, unless a new one is asked for; the old one is kept', async () => {
    await outbox.add();
    const old = await makeOlder(24 * HOUR_MS);
    await outbox.relay().runOnce();
    expect(await requeue(old)).toEqual({ kind: 'too_old' });
    const outcome = await requeue(old, { newId: true });
    if (outcome.kind !== 'requeued') throw new Error(outcome.kind);
    expect(outcome.id).not.toBe(old);
    expect(await storedEvents(outbox)).toMatchObject([{ event_id: outcome.id, previous_id: old, state: 'pending' }]);
    expect((await outbox.relay().runOnce()).delivered).toBe(1);
  });

  it('is preceded by a look: parked ones first, with what went wrong', async () => {
    await outbox.add({ aggregateId: 'waits', type: 'waits' });
    await endLeases(outbox);
    const relay = outbox.relay({ deliver: refuse, maxAttempts: 1 });
    await relay.runOnce();
    const waiting = await outbox.add({ aggregateId: 'other' });
    const list = await listUndelivered(outbox.connections.business, 10);
    expect(list).toMatchObject([
      { type: 'waits', state: 'parked', attempts: 1, lastError: 'the consumer said no' },
      { id: waiting, state: 'pending', attempts: 0, lastError: null },
    ]);
    expect(await listUndelivered(outbox.connections.business, 1)).toHaveLength(1);
  });
});
