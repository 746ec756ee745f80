import { deferred } from '../support/deferred';
import { endLeases, openTestOutbox, storedEvents, type TestOutbox } from '../support/outbox';

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

describe('a relay whose lease is over', () => {
  it('changes nothing: another one has the event, and delivers it once more under the same id', async () => {
    const id = await outbox.add({ type: 'first' });
    await outbox.add({ type: 'second' });
    const asked = deferred();
    const answer = deferred();
    const stale = outbox.relay({
      deliver: async () => {
        asked.resolve();
        await answer.promise;
      },
    });
    const round = stale.runOnce();
    await asked.promise;
    await endLeases(outbox);
    const holding = deferred();
    const taken = deferred();
    const other = outbox.relay({
      deliver: async () => {
        taken.resolve();
        await holding.promise;
      },
    });
    const otherRound = other.runOnce();
    await taken.promise;
    answer.resolve();
    expect(await round).toMatchObject({ delivered: 0, fenced: 1 });
    expect(stale.told).toEqual([{ type: 'fenced', eventId: id, eventType: 'first', attempts: 0 }]);
    expect((await storedEvents(outbox)).map(({ state }) => state)).toEqual(['pending', 'pending']);
    // Nor may the second event overtake.
    expect((await outbox.relay().runOnce()).taken).toBe(0);
    holding.resolve();
    expect((await otherRound).delivered).toBe(1);
    expect([...stale.delivered, ...other.delivered].map((event) => event.id)).toEqual([id, id]);
  });

  it('does not give back what another relay has by then', async () => {
    await outbox.add({ aggregateId: 'p-1' });
    await outbox.add({ aggregateId: 'p-2' });
    const asked = deferred();
    const answer = deferred();
    const stale = outbox.relay({
      parallel: 1,
      deliver: async () => {
        asked.resolve();
        await answer.promise;
      },
    });
    const round = stale.runOnce();
    await asked.promise;
    await endLeases(outbox);
    const taken = deferred();
    const holding = deferred();
    const other = outbox.relay({
      deliver: async () => {
        taken.resolve();
        await holding.promise;
      },
    });
    const otherRound = other.runOnce();
    await taken.promise;
    const stopped = stale.stop();
    answer.resolve();
    await Promise.all([round, stopped]);
    expect((await outbox.relay().runOnce()).taken).toBe(0);
    holding.resolve();
    expect((await otherRound).delivered).toBe(2);
  });

  it.each(['postpones', 'parks'] as const)('neither %s the event', async (what) => {
    await outbox.add();
    const asked = deferred();
    const answer = deferred();
    const stale = outbox.relay({
      maxAttempts: what === 'parks' ? 1 : 20,
      deliver: async () => {
        asked.resolve();
        await answer.promise;
        throw new Error('refused');
      },
    });
    const round = stale.runOnce();
    await asked.promise;
    await endLeases(outbox);
    expect((await outbox.relay().runOnce()).delivered).toBe(1);
    answer.resolve();
    expect(await round).toMatchObject({ fenced: 1, failed: 0, parked: 0 });
    expect(await storedEvents(outbox)).toMatchObject([{ state: 'delivered', attempts: 0, last_error: null }]);
  });
});
