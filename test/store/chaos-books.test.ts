import { randomUUID } from 'node:crypto';
import { unsettled, wrongAnswers, wrongInTables } from '../chaos/books';
import type { Intent } from '../chaos/intents';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  // The products's own index would not let two payments of one order in.
  await database.rows('DROP INDEX payments_one_live_per_order');
});
beforeEach(() =>
  database.rows(
    `TRUNCATE payments, refunds, payment_drafts, card_network_authorizations, card_network_refunds, receipt_mails,
       outbox_events`,
  ),
);
afterAll(() => database.drop());

async function pay(order: string): Promise<string> {
  const id = randomUUID();
  await database.rows(
    `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state, authorization_id, etag)
     VALUES ($1, 'shop-1', $2, 1250, 'EUR', 'tok', 'authorized', 'a', gen_random_uuid())`,
    [id, order],
  );
  return id;
}

const charge = (reference: string) =>
  database.rows(
    `INSERT INTO card_network_authorizations
       (authorization_id, scope, request_id, reference, amount_minor, currency, payment_method, state)
     VALUES (gen_random_uuid(), 'payments', 'key', $1, 1250, 'EUR', 'tok', 'authorized')`,
    [reference],
  );

const mail = (paymentId: string) =>
  database.rows(
    `INSERT INTO receipt_mails (mail_id, scope, request_id, payment_id, order_id, amount_minor, currency)
     VALUES (gen_random_uuid(), 'local', $1, $2, 'order', 1250, 'EUR')`,
    [randomUUID(), paymentId],
  );

/** A refund of ours, and as many of the network. */
async function refund(paymentId: string, requestId: string, carriedOut: number): Promise<void> {
  const network = randomUUID();
  await database.rows(
    `INSERT INTO refunds (refund_id, payment_id, scope, amount_minor, currency, reason, state, network_refund_id, request_id)
     VALUES (gen_random_uuid(), $1, 'shop-1', 250, 'EUR', '', 'done', $2, $3)`,
    [paymentId, network, requestId],
  );
  for (let n = 0; n < carriedOut; n += 1) await refundAtNetwork(n === 0 ? network : randomUUID());
}

const refundAtNetwork = (refundId: string) =>
  database.rows(
    `INSERT INTO card_network_refunds (refund_id, authorization_id, scope, request_id, amount_minor)
     VALUES ($1, gen_random_uuid(), 'payments', 'key', 250)`,
    [refundId],
  );

const intent = (change: Partial<Intent>): Intent => ({
  ...{
    kind: 'payment',
    requestId: 'key-1',
    of: 'order-1',
    amountMinor: 1250n,
    answers: ['x'],
    made: undefined,
    retries: 0,
  },
  ...change,
});

describe('the books of chaos', () => {
  it('agree where each payment has one charge and one mail, and each refund one of the network', async () => {
    const paid = await pay('order-1');
    await charge(paid);
    await mail(paid);
    await refund(paid, 'key-2', 1);
    const [{ id } = { id: '' }] = await database.rows<{ id: string }>('SELECT refund_id AS id FROM refunds');
    expect(await wrongInTables(database)).toEqual([]);
    const intents = [intent({ made: paid }), intent({ kind: 'refund', requestId: 'key-2', of: paid, made: id })];
    expect(await wrongAnswers(database, intents)).toEqual([]);
    expect(await unsettled(database)).toEqual([]);
  });

  it('tell an order that was paid twice', async () => {
    for (const paid of [await pay('order-1'), await pay('order-1')]) {
      await charge(paid);
      await mail(paid);
    }
    expect(await wrongInTables(database)).toEqual(['an order with several payments: order-1']);
  });

  it('tell a card that was charged twice or not at all, and a charge without a payment', async () => {
    const [twice, never] = [await pay('order-1'), await pay('order-2')];
    await charge(twice);
    await charge(twice);
    await charge('nobody');
    for (const paid of [twice, never]) await mail(paid);
    expect([...(await wrongInTables(database))].sort()).toEqual(
      [
        `a charge without a payment: nobody`,
        `a payment that was charged 0 times: ${never}`,
        `a payment that was charged 2 times: ${twice}`,
      ].sort(),
    );
  });

  it('tell a payment with two mails or none', async () => {
    const [twice, never] = [await pay('order-1'), await pay('order-2')];
    for (const paid of [twice, never]) await charge(paid);
    await mail(twice);
    await mail(twice);
    expect([...(await wrongInTables(database))].sort()).toEqual(
      [`a payment with 0 mails: ${never}`, `a payment with 2 mails: ${twice}`].sort(),
    );
  });

  it('tell a key with two refunds, a refund that nobody carried out, and one that only the network knows', async () => {
    const paid = await pay('order-1');
    await charge(paid);
    await mail(paid);
    await refund(paid, 'key-2', 1);
    await refund(paid, 'key-2', 0);
    await refundAtNetwork(randomUUID());
    expect((await wrongInTables(database)).map((line) => line.split(':')[0]).sort()).toEqual([
      'a key with several refunds',
      'a refund of the network that we do not know',
      'a refund that the network carried out 0 times',
    ]);
  });

  it('tell answers that are missing, that differ, that refuse, or of what is not there', async () => {
    const wrong = await wrongAnswers(database, [
      intent({ requestId: 'a', answers: [] }),
      intent({ requestId: 'b', answers: ['x', 'y'] }),
      intent({ requestId: 'c', answers: ['refused: CARD_DECLINED'] }),
      intent({ requestId: 'd', made: 'gone' }),
    ]);
    expect(wrong).toEqual([
      'payment a was never answered',
      'payment b was answered in several ways: x y',
      'payment c: refused: CARD_DECLINED',
      'payment d was acknowledged as gone, which is not there',
      '0 payments for 4 orders',
    ]);
  });

  it('wait for drafts', async () => {
    await database.rows(
      `INSERT INTO payment_drafts (payment_id, scope, order_id, amount_minor, currency, payment_method, request_id)
       VALUES (gen_random_uuid(), 'shop-1', 'order-1', 1250, 'EUR', 'tok', 'key')`,
    );
    expect(await unsettled(database)).toEqual(['drafts: 1']);
  });
});
