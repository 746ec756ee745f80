import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import { type CardNetwork, startCardNetwork } from '../../src/card-network/start-card-network';
import { connect, type Database } from '../../src/database/connect';
import { newRequestId } from '../../src/idempotency/index';
import { createRelay } from '../../src/outbox/relay';
import type { Deliver } from '../../src/outbox/relay-options';
import { createRefundDelivery } from '../../src/payments/deliver-refund';
import { createNetworkAuthorizer, type NetworkAuthorizer } from '../../src/payments/network-authorizer';
import { createReceiptDelivery } from '../../src/receipts/deliver-receipt';
import { createReceiptsClient, type ReceiptsClient } from '../../src/receipts/receipts-client';
import { callUntilAnswered } from '../support/call-until-answered';
import { type Books, type CrashRow, crashTable, readBooks } from '../support/crash-table';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestReceipts, type TestReceipts } from '../support/receipts';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockCall, type StockClient } from '../support/stock-client';
import { until } from '../support/until';
import { type Held, holdAtEvery, startVictim, type Victim, type VictimRole } from '../support/victim-process';

// Half a dozen processes, and as many requests as there are rows.
jest.setTimeout(120_000);

/** A request, and the order of the payment that it is about. */
interface Ordered {
  readonly call: StockCall;
  readonly order: string;
}
type Killed = Held<Ordered>;

/**
 * Every statement and every call to another service is a boundary before it is sent and one when it is done. A first
 * request shows which there are; then for each of them a request is held there, and when all are, the process is killed
 * with -9. What a process does between two boundaries nobody outside of it can see.
 */
describe('killed with -9 at every boundary, whoever finishes it: the books agree (design 4.10 and 6; cases C6, D2, L3)', () => {
  const rows: CrashRow[] = [];
  let database: TestDatabase;
  let network: CardNetwork;
  let receipts: TestReceipts;
  let survivor: TestService;
  let client: StockClient;
  let connections: Database;
  let mailing: ReceiptsClient;
  let authorizer: NetworkAuthorizer;
  const victims: Victim[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    network = await startCardNetwork({ connectionString });
    receipts = await startTestReceipts(connectionString);
    survivor = await startService({ RESUME_INTERVAL_MS: '0' });
    client = createStockClient(survivor.grpcPort);
    connections = connect({ connectionString });
    mailing = createReceiptsClient(`127.0.0.1:${receipts.port}`, { credentials: credentials.createInsecure() });
    authorizer = createNetworkAuthorizer({ address: network.address });
  });
  afterAll(async () => {
    for (const victim of victims) await victim.kill();
    for (const connected of [client, mailing, authorizer]) connected.close();
    await survivor.stop();
    await receipts.stop();
    await network.stop();
    await connections.close();
    await database.drop();
    process.stdout.write(`${crashTable(rows)}\n`);
  });

  const startService = (environment: Readonly<Record<string, string>>): Promise<TestService> =>
    startTestService({
      ...{ connectionString: database.connectionString, useNetwork: true },
      environment: { CARD_NETWORK_ADDRESS: network.address, ...environment },
    });
  const start = async (role: VictimRole): Promise<Victim> => {
    const victim = await startVictim(role, database.connectionString);
    victims.push(victim);
    return victim;
  };
  const startRelay = (): Promise<Victim> =>
    start({ role: 'relay', receiptsAddress: `127.0.0.1:${receipts.port}`, networkAddress: network.address });
  const createPayment = (): Ordered => {
    const order = `order-${randomUUID()}`;
    const request = paymentRequest({ order_id: order });
    return { order, call: { method: 'CreatePayment', request, requestId: newRequestId(), deadlineMs: 100_000 } };
  };
  /** Pays an order where nothing goes wrong, and leaves its mail to be sent. */
  const paid = async (): Promise<Ordered & { readonly paymentId: string }> => {
    const payment = createPayment();
    const { response } = await client.call(payment.call);
    return { ...payment, paymentId: response?.payment.payment_id ?? '' };
  };
  const refundPayment = async (): Promise<Ordered> => {
    const { order, paymentId } = await paid();
    const request = { payment_id: paymentId, amount_minor: '250', reason: 'broken' };
    return { order, call: { method: 'RefundPayment', request, requestId: newRequestId(), deadlineMs: 100_000 } };
  };
  const cancelPayment = async (): Promise<Ordered> => {
    const { order, paymentId } = await paid();
    return { order, call: { method: 'CancelPayment', request: { payment_id: paymentId }, deadlineMs: 100_000 } };
  };
  /** Cancels a payment where nothing goes wrong, and leaves what it holds to be given back. */
  const cancelled = async (): Promise<Ordered> => {
    const { order, call } = await cancelPayment();
    await carryOutbox();
    await client.call(call);
    return { order, call };
  };
  /** The time after which nobody waits for those that are dead. */
  const muchLater = async (): Promise<void> => {
    await database.rows(
      `UPDATE idempotency_record SET lease_until = now() - interval '2 hours' WHERE state = 'claimed'`,
    );
    await database.rows('UPDATE outbox_aggregates SET due_at = now() WHERE claim_token IS NOT NULL');
  };
  const carryOutbox = async (): Promise<void> => {
    const means = { prisma: connections.business, authorizer };
    const deliver = createRefundDelivery(means, createReceiptDelivery(mailing));
    const { runOnce } = createRelay({ client: connections.business, deliver });
    while ((await runOnce()).taken > 0);
  };
  /** Only what has a step stored is finished without its caller. */
  const finishedWithoutCaller = async ({ request: { call } }: Killed): Promise<boolean> => {
    const record = `idempotency_record WHERE request_id = '${call.requestId}'`;
    return (await database.count(`${record} AND (recovery_point IS NOT NULL OR state = 'completed')`)) === 1;
  };

  /** Enters a row, and compares its books. */
  const expectBooks = async (
    { request: { call, order }, number, boundary }: Killed,
    names: Pick<CrashRow, 'killed' | 'finishedBy'>,
    expected: Partial<Books>,
  ): Promise<void> => {
    const row = { ...boundary, ...names, number, books: await readBooks(database, order, call.requestId) };
    rows.push(row);
    expect(row).toMatchObject({ books: expected });
  };
  /** The request that asks for the mail of an order: its key is the id of the event. */
  const asEvent = async (killed: Killed): Promise<Killed> => {
    const [event] = await database.rows<{ id: string }>(
      `SELECT event_id::text AS id FROM outbox_events
       WHERE aggregate_id IN (SELECT payment_id::text FROM payments WHERE order_id = $1)`,
      [killed.request.order],
    );
    const { call, order } = killed.request;
    return { ...killed, request: { order, call: { ...call, requestId: event?.id } } };
  };
  const PAID = { payments: 1, authorizations: 1, refunds: 0, networkRefunds: 0, mails: 1 };
  const REFUNDED = { ...PAID, refunds: 1, networkRefunds: 1 };

  /** Holds a request at each boundary of a service, and kills it. */
  const killAtEvery = async (newCall: () => Promise<Ordered>): Promise<readonly Killed[]> => {
    const victim = await start({ role: 'payments', networkAddress: network.address });
    const caller = createStockClient(victim.port);
    const first = await newCall();
    const boundaries = await victim.record(() => caller.call(first.call));
    // Made before, so that those that stand don't stand longer than they have to.
    const made: Ordered[] = [];
    while (made.length < boundaries.length) made.push(await newCall());
    const next = async (): Promise<Ordered> => made.pop() ?? newCall();
    const killed = await holdAtEvery(victim, boundaries, next, ({ call }) => caller.call(call));
    await victim.kill();
    caller.close();
    return killed;
  };

  const byRetry = async (killed: readonly Killed[]): Promise<void> => {
    await muchLater();
    const answers = await Promise.all(
      killed.map(async ({ request: { call } }) => (await callUntilAnswered(client, call)).answer),
    );
    expect(answers.map(({ code }) => code)).toEqual(killed.map(() => status.OK));
  };
  const byCompleter = async (killed: readonly Killed[]): Promise<void> => {
    await muchLater();
    const completing = await startService({ RESUME_INTERVAL_MS: '20' });
    const keys = killed.map(({ request: { call } }) => `'${call.requestId}'`).join(', ');
    const half = `idempotency_record WHERE request_id IN (${keys}) AND state = 'claimed' AND recovery_point IS NOT NULL`;
    await until('all are completed', async () => (await database.count(half)) === 0, 60_000);
    await completing.stop();
  };

  describe.each([
    { method: 'CreatePayment', newCall: async () => createPayment(), expected: PAID },
    { method: 'RefundPayment', newCall: refundPayment, expected: REFUNDED },
  ])('the payments service in $method', ({ method, newCall, expected }) => {
    it('a retry finishes it, or the completer', async () => {
      const [retried, completed] = await Promise.all([killAtEvery(newCall), killAtEvery(newCall)]);
      const begun = await Promise.all(completed.map(finishedWithoutCaller));
      await byRetry(retried);
      const unfinished = completed.filter((_, index) => begun[index] === false);
      await byCompleter(completed);
      await carryOutbox();
      const what = `payments, ${method}`;
      for (const killed of retried) await expectBooks(killed, { killed: what, finishedBy: 'retry' }, expected);
      for (const killed of completed.filter((_, index) => begun[index] === true)) {
        await expectBooks(killed, { killed: what, finishedBy: 'completer' }, expected);
      }

      // Of these nothing was stored, so nobody has charged or recorded anything, and only their callers know them.
      expect(unfinished.length).toBeGreaterThan(0);
      for (const { request } of unfinished) {
        expect(await readBooks(database, request.order, undefined)).toMatchObject({
          ...expected,
          ...nothingOf(method),
        });
      }
      await byRetry(unfinished);
      await carryOutbox();
      const finishedBy = 'completer finds nothing; retry';
      for (const killed of unfinished) await expectBooks(killed, { killed: what, finishedBy }, expected);
      // The table is about these, whatever else there is.
      const names = retried.map(({ boundary }) => boundary.name).join('\n');
      for (const name of ['INSERT idempotency_record', 'call ', 'COMMIT']) expect(names).toContain(name);
    });
  });

  it('the payments service in CancelPayment, which takes no key: a retry finishes it, and the relay gives back', async () => {
    const killed = await killAtEvery(cancelPayment);
    await byRetry(killed);
    await carryOutbox();
    const names = { killed: 'payments, CancelPayment', finishedBy: 'retry, relay' };
    for (const each of killed) await expectBooks(each, names, REFUNDED);
    expect(killed.map(({ boundary }) => boundary.name).join('\n')).toMatch(/INSERT outbox_aggregates[^]*COMMIT/);
  });

  it('the relay, before and after it has the money of a cancelled payment given back', async () => {
    await carryOutbox();
    const victim = await startRelay();
    await cancelled();
    const boundaries = await victim.record(() => victim.round());
    const killed = await holdAtEvery(victim, boundaries, cancelled, () => victim.round());
    await victim.kill();
    await muchLater();
    await carryOutbox();
    for (const each of killed) await expectBooks(each, { killed: 'relay, refund', finishedBy: 'another' }, REFUNDED);
    expect(boundaries.map(({ name }) => name)).toContain('call Refund');
  });

  it('the relay, before and after it takes, delivers and marks', async () => {
    await carryOutbox();
    const victim = await startRelay();
    await paid();
    const boundaries = await victim.record(() => victim.round());
    const killed = await holdAtEvery(victim, boundaries, paid, () => victim.round());
    await victim.kill();
    await muchLater();
    await carryOutbox();
    for (const each of killed) await expectBooks(await asEvent(each), { killed: 'relay', finishedBy: 'another' }, PAID);
    expect(await database.count(`outbox_events WHERE state <> 'delivered'`)).toBe(0);
    expect(boundaries.map(({ name }) => name)).toContain('call SendReceipt');
  });

  it('the receipts service, around its own claim and completion', async () => {
    await carryOutbox();
    const victim = await start({ role: 'receipts' });
    const dying = createReceiptsClient(`127.0.0.1:${victim.port}`, {
      ...{ credentials: credentials.createInsecure(), timeoutMs: 100_000, attemptTimeoutMs: 100_000 },
    });
    let die = (): void => undefined;
    const dead = new Promise<never>((_, reject) => (die = () => reject(new Error('killed'))));
    dead.catch(() => undefined);
    const sending = createReceiptDelivery(dying);
    // Who delivers must not wait for the answer of a process that is gone.
    const deliver: Deliver = (event, context) => Promise.race([sending(event, context), dead]);
    const relay = () =>
      createRelay({
        ...{ client: connections.business, deliver, batchSize: 1, initialBackoffMs: 1, maxBackoffMs: 1 },
        ...{ deliveryTimeoutMs: 100_000, leaseMs: 200_000 },
      });
    await paid();
    const boundaries = await victim.record(() => relay().runOnce());
    const rounds: Promise<unknown>[] = [];
    const killed = await holdAtEvery(victim, boundaries, paid, async () => {
      const round = relay().runOnce();
      rounds.push(round);
      await round;
    });
    await victim.kill();
    die();
    await Promise.all(rounds);
    dying.close();
    await muchLater();
    await carryOutbox();
    await until('all events are delivered', async () => {
      await carryOutbox();
      return (await database.count(`outbox_events WHERE state <> 'delivered'`)) === 0;
    });
    for (const each of killed)
      await expectBooks(await asEvent(each), { killed: 'receipts', finishedBy: 'relay' }, PAID);
    expect(boundaries.map(({ name }) => name).join()).toContain('INSERT receipt_mails');
  });
});

/** What the books have of a request of which no step was stored. */
function nothingOf(method: string): Partial<Books> {
  return method === 'CreatePayment' ? { payments: 0, authorizations: 0, mails: 0 } : { refunds: 0, networkRefunds: 0 };
}
