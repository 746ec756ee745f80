import { credentials } from '../../src/idempotency/index';
import { createOutbox } from '../../src/outbox/outbox';
import { createReceiptDelivery } from '../../src/receipts/deliver-receipt';
import { receiptRequested } from '../../src/receipts/receipt-event';
import { createReceiptsClient } from '../../src/receipts/receipts-client';
import { endLeases, openTestOutbox, storedEvents, type TestOutbox } from '../support/outbox';
import { startTestReceipts, type TestReceipts } from '../support/receipts';
import { type RelayProcess, type RelayProcessOptions, startRelayProcess } from '../support/relay-process';
import { until } from '../support/until';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

let outbox: TestOutbox;
let receipts: TestReceipts;
let relays: RelayProcess[] = [];

beforeEach(async () => {
  outbox = await openTestOutbox();
  receipts = await startTestReceipts(outbox.database.connectionString);
});

afterEach(async () => {
  await Promise.all(relays.map((relay) => relay.kill()));
  relays = [];
  await receipts.stop();
  await outbox.close();
});

const addReceipt = (paymentId = 'p-1') =>
  outbox.connections.business.$transaction((tx) =>
    createOutbox().add(tx, receiptRequested({ paymentId, orderId: 'o-1', amountMinor: 1250n, currency: 'EUR' })),
  );
const mails = () =>
  outbox.database.rows('SELECT request_id, payment_id, order_id, amount_minor, currency FROM receipt_mails');
const mailOf = (id: string) => ({
  ...{ request_id: id, payment_id: 'p-1', order_id: 'o-1', amount_minor: '1250', currency: 'EUR' },
});
const start = async (options: Pick<RelayProcessOptions, 'stopsAt'> = {}) => {
  const { connectionString } = outbox.database;
  const relay = await startRelayProcess({ connectionString, receiptsPort: receipts.port, ...options });
  relays.push(relay);
  return relay;
};
const allDelivered = () =>
  until('every event is delivered', async () =>
    (await storedEvents(outbox)).every(({ state }) => state === 'delivered'),
  );

describe('a relay that is killed', () => {
  it('after a delivery was confirmed and before it is marked: it is delivered once more, and one mail goes out (case L3)', async () => {
    const id = await addReceipt();
    const killed = await start({ stopsAt: 'confirmed' });
    await killed.stoodStill;
    await killed.kill();
    expect(await storedEvents(outbox)).toMatchObject([{ state: 'pending' }]);
    expect(await mails()).toEqual([mailOf(id)]);

    await endLeases(outbox);
    await start();
    await allDelivered();
    expect(receipts.outcomes).toEqual(['claimed', 'replayed']);
    expect(await mails()).toEqual([mailOf(id)]);
  });

  it('after it is marked: nothing is delivered again, and the next event is', async () => {
    const id = await addReceipt();
    const killed = await start({ stopsAt: 'marked' });
    await killed.stoodStill;
    await killed.kill();
    expect(await storedEvents(outbox)).toMatchObject([{ state: 'delivered' }]);

    const next = await addReceipt();
    await start();
    await allDelivered();
    expect(receipts.outcomes).toEqual(['claimed', 'claimed']);
    expect(await mails()).toEqual([mailOf(id), mailOf(next)]);
  });
});

describe('a delivery by gRPC', () => {
  const relayOf = (options: { readonly port: number }) => {
    const client = createReceiptsClient(`127.0.0.1:${options.port}`, { credentials: credentials.createInsecure() });
    const relay = outbox.relay({ deliver: createReceiptDelivery(client), deliveryTimeoutMs: 1_000 });
    return { relay, client };
  };

  it('that is refused leaves its event waiting, and says why', async () => {
    await outbox.connections.business.$transaction((tx) =>
      createOutbox().add(tx, receiptRequested({ paymentId: 'p-1', orderId: '', amountMinor: 1n, currency: 'EUR' })),
    );
    const { relay, client } = relayOf(receipts);
    expect((await relay.runOnce()).failed).toBe(1);
    client.close();
    expect(await storedEvents(outbox)).toMatchObject([
      {
        state: 'pending',
        attempts: 1,
        last_error: expect.stringContaining('order_id: expected 1 to 128 characters') as string,
      },
    ]);
    expect(await mails()).toEqual([]);
  });

  it('of a type that no consumer is known for leaves its event waiting', async () => {
    await outbox.add({ type: 'payments.v1.Unheard' });
    const { relay, client } = relayOf(receipts);
    expect((await relay.runOnce()).failed).toBe(1);
    client.close();
    expect((await storedEvents(outbox))[0]?.last_error).toContain('no consumer is known for events of the type');
  });

  it('to a consumer that is away fails within its time, and succeeds when the consumer is back', async () => {
    const id = await addReceipt();
    const { port } = receipts;
    await receipts.stop();
    const { relay, client } = relayOf({ port });
    expect((await relay.runOnce()).failed).toBe(1);
    client.close();
    receipts = await startTestReceipts(outbox.database.connectionString);
    const back = relayOf(receipts);
    await until('it is delivered', async () => (await back.relay.runOnce()).delivered === 1);
    back.client.close();
    expect(await mails()).toEqual([mailOf(id)]);
  });
});
