import type { Relay } from '../../src/outbox/relay';
import { deferred } from '../support/deferred';
import { openTestOutbox, type TestOutbox } from '../support/outbox';
import { until } from '../support/until';

let outbox: TestOutbox;
let relay: Relay | undefined;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterEach(() => relay?.stop());
afterAll(() => outbox.close());

describe('a delivery that outlives its round', () => {
  it('is followed by the next event of its aggregate at once, however long the relay would wait for work', async () => {
    const [begun, letGo, next] = [deferred<undefined>(), deferred<undefined>(), deferred<undefined>()];
    let deliveries = 0;
    const started = outbox.relay({
      ...{ idleMs: 60_000, maxIdleMs: 60_000 },
      deliver: async () => {
        deliveries += 1;
        if (deliveries > 1) return next.resolve(undefined);
        begun.resolve(undefined);
        await letGo.promise;
      },
    });
    relay = started;
    for (const aggregateId of ['a', 'a']) await outbox.add({ aggregateId });
    started.start();
    await begun.promise;
    // Its round and the empty one after it are over by then.
    await new Promise((resolve) => setTimeout(resolve, 300));
    letGo.resolve(undefined);
    await next.promise;
  });

  it('leaves the places that are free to others, and no more', async () => {
    const letGo = deferred<undefined>();
    let running = 0;
    let most = 0;
    const started = outbox.relay({
      ...{ parallel: 2, idleMs: 1, maxIdleMs: 5 },
      deliver: async () => {
        most = Math.max(most, (running += 1));
        await letGo.promise;
        running -= 1;
      },
    });
    relay = started;
    await outbox.add({ aggregateId: 'a' });
    started.start();
    await until('the first is under way', () => Promise.resolve(running === 1));
    await new Promise((resolve) => setTimeout(resolve, 200));
    await Promise.all(['b', 'c', 'd'].map((aggregateId) => outbox.add({ aggregateId })));
    await until('the second is under way', () => Promise.resolve(running >= 2));
    await new Promise((resolve) => setTimeout(resolve, 300));
    letGo.resolve(undefined);
    await until('all are delivered', () => Promise.resolve(started.delivered.length === 4));
    expect(most).toBe(2);
  });

  it('keeps a relay that stops from taking what it would not deliver', async () => {
    const [begun, letGo] = [deferred<undefined>(), deferred<undefined>()];
    const started = outbox.relay({
      ...{ parallel: 1, idleMs: 1, maxIdleMs: 5 },
      deliver: async () => {
        begun.resolve(undefined);
        await letGo.promise;
      },
    });
    relay = started;
    await outbox.add({ aggregateId: 'a' });
    started.start();
    await begun.promise;
    await new Promise((resolve) => setTimeout(resolve, 200));
    await outbox.add({ aggregateId: 'b' });
    const [before] = await outbox.database.rows<{ xmin: string }>(
      `SELECT xmin::text FROM outbox_aggregates WHERE aggregate_id = 'b'`,
    );
    const stopping = started.stop();
    letGo.resolve(undefined);
    await stopping;
    const [after] = await outbox.database.rows<{ xmin: string }>(
      `SELECT xmin::text FROM outbox_aggregates WHERE aggregate_id = 'b'`,
    );
    expect(after).toEqual(before);
  });

  it('leaves nothing taken by a round that is run beside it and has no place', async () => {
    const letGo = deferred<undefined>();
    const started = outbox.relay({ parallel: 1, batchSize: 1, deliver: () => letGo.promise.then(() => undefined) });
    relay = undefined;
    for (const aggregateId of ['a', 'b']) await outbox.add({ aggregateId });
    const both = Promise.all([started.runOnce(), started.runOnce()]);
    await until(
      'one is given back',
      async () => (await outbox.database.count('outbox_aggregates WHERE claim_token IS NOT NULL')) === 1,
      3_000,
    );
    letGo.resolve(undefined);
    await both;
    expect(await outbox.database.count('outbox_aggregates WHERE claim_token IS NOT NULL')).toBe(0);
  });
});
