import type { Relay } from '../../src/outbox/relay';
import { deferred } from '../support/deferred';
import { openTestOutbox, type TestOutbox } from '../support/outbox';

let outbox: TestOutbox;
let relay: Relay | undefined;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterEach(() => relay?.stop());
afterAll(() => outbox.close());

/** A relay whose deliveries of some aggregates hang until they are let go. */
function hangingFor(hanging: readonly string[], parallel: number) {
  const letGo = deferred<undefined>();
  const begun: string[] = [];
  const told = new Map([...'abcdefgh'].map((id) => [id, deferred<undefined>()] as const));
  const started = outbox.relay({
    ...{ parallel, idleMs: 1, maxIdleMs: 5 },
    deliver: async ({ aggregateId }) => {
      begun.push(aggregateId);
      told.get(aggregateId)?.resolve(undefined);
      if (hanging.includes(aggregateId)) await letGo.promise;
    },
  });
  relay = started;
  return {
    relay: started,
    begun,
    letGo: () => letGo.resolve(undefined),
    toldOf: (id: string) => told.get(id)?.promise,
  };
}

describe('a consumer that does not answer', () => {
  it('keeps the place of its own delivery, and no other event waiting', async () => {
    await outbox.add({ aggregateId: 'a' });
    const { relay: hanging, toldOf, letGo } = hangingFor(['a'], 2);
    hanging.start();
    await toldOf('a');
    for (const aggregateId of ['b', 'c']) {
      await outbox.add({ aggregateId });
      await toldOf(aggregateId);
    }
    letGo();
    await hanging.stop();
    expect(hanging.delivered.map(({ aggregateId }) => aggregateId).sort()).toEqual(['a', 'b', 'c']);
  });

  it('is sent no more than `parallel` at once, whatever hangs', async () => {
    for (const aggregateId of ['a', 'b']) await outbox.add({ aggregateId });
    const { relay: hanging, toldOf, letGo, begun } = hangingFor(['a', 'b'], 2);
    hanging.start();
    await Promise.all([toldOf('a'), toldOf('b')]);
    await outbox.add({ aggregateId: 'c' });
    // Long enough for many rounds, had any begun.
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect([...begun].sort()).toEqual(['a', 'b']);
    letGo();
    await toldOf('c');
  });

  it('is waited for when the relay stops', async () => {
    await outbox.add({ aggregateId: 'a' });
    const { relay: hanging, toldOf, letGo } = hangingFor(['a'], 2);
    hanging.start();
    await toldOf('a');
    await outbox.add({ aggregateId: 'b' });
    await toldOf('b');
    let stopped = false;
    const stopping = hanging.stop().then(() => (stopped = true));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(stopped).toBe(false);
    letGo();
    await stopping;
    expect(hanging.delivered.map(({ aggregateId }) => aggregateId)).toContain('a');
  });
});
