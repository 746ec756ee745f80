import { createOutbox } from '../../src/outbox/outbox';
import { eventOf, openTestOutbox, storedEvents, type TestOutbox } from '../support/outbox';

let outbox: TestOutbox;

beforeAll(async () => (outbox = await openTestOutbox()));
beforeEach(() => outbox.database.rows('TRUNCATE outbox_events, outbox_aggregates'));
afterAll(() => outbox.close());

describe('outbox.add', () => {
  it('keeps an event if its transaction commits, under a dated id, with bytes, headers and its place', async () => {
    const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
    const id = await outbox.add({ payload: Buffer.from([0, 255, 1]), headers });
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(await outbox.database.rows('SELECT * FROM outbox_events')).toEqual([
      expect.objectContaining({
        ...{ event_id: id, aggregate_type: 'payment', aggregate_id: 'p-1', type: 'paid', state: 'pending' },
        ...{ payload: Buffer.from([0, 255, 1]), headers, attempts: 0 },
      }),
    ]);
  });

  it('writes an object as JSON', async () => {
    await outbox.add({ payload: { name: 'ğ', parts: [1, null, true] } });
    const [row] = await outbox.database.rows<{ payload: Buffer }>('SELECT payload FROM outbox_events');
    expect(row?.payload.toString()).toBe('{"name":"ğ","parts":[1,null,true]}');
  });

  it('leaves nothing where the transaction rolls back', async () => {
    const failed = outbox.connections.business.$transaction(async (tx) => {
      await createOutbox().add(tx, eventOf());
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await outbox.database.count('outbox_events')).toBe(0);
    expect(await outbox.database.count('outbox_aggregates')).toBe(0);
  });

  it('tells that something was added', async () => {
    let added = 0;
    const watched = createOutbox({ onAdded: () => (added += 1) });
    await outbox.connections.business.$transaction((tx) => watched.add(tx, eventOf()));
    expect(added).toBe(1);
  });

  it.each([
    ['no aggregate type', { aggregateType: '' }, 'aggregateType: expected a text'],
    ['no aggregate', { aggregateId: undefined as unknown as string }, 'aggregateId: expected a text'],
    ['an aggregate of half a character', { aggregateId: '\ud800' }, 'aggregateId: expected'],
    ['an aggregate that Postgres cannot store', { aggregateId: 'a\u0000' }, 'aggregateId: expected'],
    ['an aggregate without end', { aggregateId: 'a'.repeat(256) }, 'aggregateId: expected a text of 1 to 255'],
    ['no type', { type: '' }, 'type: expected a text'],
    ['a payload over the limit', { payload: Buffer.alloc(65_537) }, 'payload: expected at most 65536 bytes, got 65537'],
    ['JSON over the limit', { payload: { a: 'ğ'.repeat(32_768) } }, 'payload: expected at most 65536 bytes'],
    ['a payload that JSON cannot write', { payload: { a: 1n } as never }, 'payload: expected bytes, or an object'],
    ['no payload', { payload: undefined as never }, 'payload: expected bytes, or an object'],
    ['the key among the headers', { headers: { 'request-id': 'mine' } }, 'headers["request-id"]: expected'],
    ['a header of gRPC', { headers: { 'grpc-timeout': '1S' } }, 'headers["grpc-timeout"]: expected'],
    ['a header that would be shortened', { headers: { note: ' x' } }, 'headers["note"]: expected'],
    ['headers over the limit', { headers: { note: 'x'.repeat(4_097) } }, 'headers: expected at most 4096 bytes'],
  ])('refuses %s, by name, and writes nothing', async (_, change, message) => {
    const refused = outbox.connections.business.$transaction(async (tx) => {
      await expect(createOutbox().add(tx, eventOf(change))).rejects.toThrow(message);
      await expect(createOutbox().add(tx, eventOf(change))).rejects.toThrow(TypeError);
    });
    await refused;
    expect(await storedEvents(outbox)).toEqual([]);
  });

  it('names every fault at once', async () => {
    const add = createOutbox().add(outbox.connections.business, eventOf({ aggregateType: '', type: '' }));
    await expect(add).rejects.toThrow(/^event: aggregateType: .*; type: /);
  });

  it('takes a payload of the limit', async () => {
    await outbox.add({ payload: Buffer.alloc(65_536) });
    expect(await outbox.database.count('outbox_events')).toBe(1);
  });
});
