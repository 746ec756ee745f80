import { setTimeout as delay } from 'node:timers/promises';
import { createOutbox } from '../../src/outbox/outbox';
import { receiptRequested } from '../../src/receipts/receipt-event';
import { openTestOutbox, type TestOutbox } from '../support/outbox';
import { startTestReceipts, type TestReceipts } from '../support/receipts';
import { type RelayProcess, startRelayProcess } from '../support/relay-process';

/** More of them take longer and find nothing else; 10,000 were run by hand. */
const EVENTS = Number(process.env['OUTBOX_EVENTS'] ?? 600);
const AGGREGATES = 50;
const ADDERS = 4;
/** A kill costs two seconds of lease for what the relay had in hand. */
const MOST_KILLS = EVENTS / 120;
const WITHIN_MS = 60_000 + EVENTS * 60;

jest.setTimeout(WITHIN_MS + 30_000);

let outbox: TestOutbox;
let receipts: TestReceipts;
let relays: RelayProcess[] = [];

beforeAll(async () => {
  outbox = await openTestOutbox();
  receipts = await startTestReceipts(outbox.database.connectionString);
});

afterAll(async () => {
  await Promise.all(relays.map((relay) => relay.kill()));
  await receipts.stop();
  await outbox.close();
});

const startRelay = () =>
  startRelayProcess({
    ...{ connectionString: outbox.database.connectionString, receiptsPort: receipts.port },
    relay: { batchSize: 25, leaseMs: 2_000, deliveryTimeoutMs: 1_500, initialBackoffMs: 50, maxBackoffMs: 200 },
  });

/** Adds the events of its share of the aggregates, one transaction after another, each for several aggregates. */
async function addEvents(adder: number): Promise<void> {
  for (let turn = 1; turn <= EVENTS / AGGREGATES; turn += 1) {
    for (let first = adder; first < AGGREGATES; first += 5 * ADDERS) {
      await outbox.connections.business.$transaction(async (tx) => {
        for (let n = first; n < Math.min(AGGREGATES, first + 5 * ADDERS); n += ADDERS) {
          const content = { paymentId: `p-${n}`, orderId: `o-${n}`, amountMinor: BigInt(turn), currency: 'EUR' };
          await createOutbox().add(tx, receiptRequested(content));
        }
      });
    }
  }
}

it('two relays that are killed again and again lose nothing, send no mail twice and keep the order of every payment', async () => {
  relays = await Promise.all([startRelay(), startRelay()]);
  let isDone = false;
  let kills = 0;
  const killing = (async () => {
    while (!isDone && kills < MOST_KILLS) {
      await delay(200 + Math.random() * 1_800);
      if (isDone) return;
      const victim = kills % 2;
      await relays[victim]?.kill();
      kills += 1;
      relays[victim] = await startRelay();
    }
  })();
  const giveUpAtMs = performance.now() + WITHIN_MS;
  try {
    await Promise.all(Array.from({ length: ADDERS }, (_, adder) => addEvents(adder)));
    while ((await outbox.database.count(`outbox_events WHERE state <> 'delivered'`)) > 0) {
      if (performance.now() > giveUpAtMs) throw new Error('events are left undelivered');
      await delay(50);
    }
  } finally {
    isDone = true;
    await killing;
  }

  const mails = await outbox.database.rows<{ payment_id: string; amounts: readonly number[]; keys: string }>(
    `SELECT payment_id, array_agg(amount_minor::int ORDER BY created_at, mail_id) AS amounts,
       count(DISTINCT request_id) AS keys
     FROM receipt_mails GROUP BY payment_id`,
  );
  const turns = Array.from({ length: EVENTS / AGGREGATES }, (_, turn) => turn + 1);
  expect(mails).toHaveLength(AGGREGATES);
  for (const { amounts, keys } of mails) {
    expect(amounts).toEqual(turns);
    expect(Number(keys)).toBe(turns.length);
  }
  expect(await outbox.database.count('receipt_mails')).toBe(EVENTS);
  const unsent = `outbox_events LEFT JOIN receipt_mails ON request_id = event_id::text WHERE mail_id IS NULL`;
  expect(await outbox.database.count(unsent)).toBe(0);
  expect(kills).toBeGreaterThan(0);
});
