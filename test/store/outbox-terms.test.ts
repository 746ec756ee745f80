import { createRequestIds } from '../../src/idempotency/request-id';
import type { EventTerms } from '../../src/outbox/relay-options';
import { requeueAll, requeueEvent } from '../../src/outbox/requeue';
import { openTestOutbox, storedEvents, type TestOutbox } from '../support/outbox';

const HOUR_MS = 3_600_000;

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

/** Adds an event of an aggregate of its own, whose id is so old. */
async function addOld(type: string, ageMs: number): Promise<string> {
  const id = createRequestIds({ nowMs: () => Date.now() - ageMs })();
  await outbox.add({ type, aggregateId: type });
  await outbox.database.rows('UPDATE outbox_events SET event_id = $1 WHERE type = $2', [id, type]);
  return id;
}
/** For events of the type `own`. */
const termsOf = (terms: EventTerms) => (type: string) => (type === 'own' ? terms : {});

describe('the terms of a type of event', () => {
  it('say how old it may be, and leave other types to the relay', async () => {
    await addOld('own', 30 * HOUR_MS);
    await addOld('other', 30 * HOUR_MS);
    const relay = outbox.relay({ termsOf: termsOf({ giveUpAfterMs: 48 * HOUR_MS }) });
    expect(await relay.runOnce()).toMatchObject({ taken: 2, delivered: 1, parked: 1 });
    expect(relay.delivered).toMatchObject([{ type: 'own' }]);

    await outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates');
    await addOld('own', 49 * HOUR_MS);
    expect(await relay.runOnce()).toMatchObject({ taken: 1, parked: 1 });
  });

  it('say how often it may fail, and leave other types to the relay', async () => {
    await outbox.add({ type: 'own', aggregateId: 'own' });
    await outbox.add({ type: 'other', aggregateId: 'other' });
    const relay = outbox.relay({
      ...{ termsOf: termsOf({ maxAttempts: 2 }), maxAttempts: 1 },
      deliver: () => Promise.reject(new Error('the consumer said no')),
    });
    expect(await relay.runOnce()).toMatchObject({ taken: 2, failed: 1, parked: 1 });
    await outbox.database.rows('UPDATE outbox_aggregates SET due_at = now()');
    expect(await relay.runOnce()).toMatchObject({ taken: 1, parked: 1 });
    expect((await storedEvents(outbox)).map(({ attempts }) => attempts)).toEqual([2, 1]);
  });

  it.each([0, -1, Number.NaN, Infinity])(
    'are those of the relay where they are no number to go by: %s',
    async (wrong) => {
      await addOld('own', 24 * HOUR_MS);
      const terms = termsOf({ giveUpAfterMs: wrong, maxAttempts: wrong });
      expect((await outbox.relay({ termsOf: terms }).runOnce()).parked).toBe(1);
      await outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates');
      await addOld('own', 0);
      const deliver = () => Promise.reject(new Error('the consumer said no'));
      expect((await outbox.relay({ termsOf: terms, maxAttempts: 1, deliver }).runOnce()).parked).toBe(1);
      await outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates');
      await addOld('own', 0);
      expect((await outbox.relay({ termsOf: terms, maxAttempts: 2, deliver }).runOnce()).failed).toBe(1);
    },
  );

  it('say for how long a parked one is sent again under its id', async () => {
    const { business } = outbox.connections;
    const own = await addOld('own', 30 * HOUR_MS);
    await addOld('other', 30 * HOUR_MS);
    expect((await outbox.relay().runOnce()).parked).toBe(2);
    expect(await requeueEvent(business, own)).toEqual({ kind: 'too_old' });
    const options = { termsOf: termsOf({ giveUpAfterMs: 48 * HOUR_MS }) };
    expect(await requeueAll(business, options)).toEqual({ requeued: 1, tooOld: 1 });
    expect((await storedEvents(outbox)).map(({ state }) => state)).toEqual(['pending', 'parked']);
  });
});
