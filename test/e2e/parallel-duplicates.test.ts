import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { holdRecords } from '../support/record-hold';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockAnswer, type StockCall, type StockClient } from '../support/stock-client';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const CALLS_PER_ROUND = 100;

/** Two processes on one database, each with a client of its own. */
interface Pair {
  readonly database: TestDatabase;
  readonly clients: readonly [StockClient, StockClient];
  end(): Promise<void>;
}

interface PairOptions {
  /** `default_transaction_isolation` of the database. */
  readonly isolation?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

describe('100 parallel calls with one key over two processes', () => {
  let pair: Pair;

  afterEach(() => pair.end());

  it('make one payment per key, and every caller is told its answer or to come again', async () => {
    pair = await startPair();
    await expectOneEffectPerRound(pair, 50);
  });

  it.each(['1', '2'])('do so with pools of %s', async (size) => {
    const environment = { BUSINESS_POOL_SIZE: size, STORE_POOL_SIZE: size };
    pair = await startPair({ environment });
    await expectOneEffectPerRound(pair, 10);
  });

  it('do so in a database whose transactions are REPEATABLE READ unless they say otherwise', async () => {
    pair = await startPair({ isolation: 'repeatable read' });
    await expectOneEffectPerRound(pair, 10);
  });
});

describe.each(['read committed', 'repeatable read'])('a duplicate that meets an uncommitted claim, %s', (isolation) => {
  it('waits for it and is asked to come again, without an error of the database', async () => {
    const { database, clients, end } = await startPair({ isolation });
    try {
      const hold = await holdRecords(database, 'at the commit of a claim');
      const pay = createPayment('order-1');
      const first = clients[0].call(pay);
      await hold.waiting(1);
      const second = clients[1].call(pay);
      await hold.waiting(2);
      await hold.open();

      const answers = await Promise.all([first, second]);
      expect(answers[0].code).toBe(status.OK);
      expectAnswerOrComeAgain(answers, answers[0]);
      await expectReplay(clients[1], pay, answers[0]);
      expect(await database.count('payments')).toBe(1);
    } finally {
      await end();
    }
  });
});

async function startPair({ isolation, environment = {} }: PairOptions = {}): Promise<Pair> {
  const database = await createTestDatabase();
  const { connectionString } = database;
  if (isolation !== undefined) {
    const name = new URL(connectionString).pathname.slice(1);
    await database.rows(`ALTER DATABASE ${name} SET default_transaction_isolation = '${isolation}'`);
  }
  const start = (): Promise<ServiceProcess> => startServiceProcess({ connectionString, environment });
  const [first, second] = await Promise.all([start(), start()]);
  const clients: Pair['clients'] = [createStockClient(first.grpcPort), createStockClient(second.grpcPort)];
  const end = async (): Promise<void> => {
    for (const client of clients) client.close();
    for (const service of [first, second]) service.kill('SIGKILL');
    await Promise.all([first.exited, second.exited]);
    await database.drop();
  };
  return { database, clients, end };
}

async function expectOneEffectPerRound({ database, clients }: Pair, rounds: number): Promise<void> {
  for (let round = 1; round <= rounds; round += 1) {
    const pay = createPayment(`order-${round}`);
    const calls = Array.from({ length: CALLS_PER_ROUND }, (_, call) => clients[call % 2 === 0 ? 0 : 1].call(pay));
    const answers = await Promise.all(calls);
    const winner = answers.find(({ code }) => code === status.OK);
    if (winner === undefined) throw new Error(`round ${round} has no answer: ${answers[0]?.details}`);
    expectAnswerOrComeAgain(answers, winner);
    for (const client of clients) await expectReplay(client, pay, winner);
  }
  expect(await database.count('payments')).toBe(rounds);
  expect(await database.count('(SELECT DISTINCT order_id FROM payments) AS orders')).toBe(rounds);
  expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(rounds);
  expect(await database.count('idempotency_record')).toBe(rounds);
}

function createPayment(orderId: string): StockCall {
  return { method: 'CreatePayment', request: paymentRequest({ order_id: orderId }), requestId: randomUUID() };
}

function expectAnswerOrComeAgain(answers: readonly StockAnswer[], { bytes }: StockAnswer): void {
  for (const answer of answers) {
    if (answer.code === status.OK) {
      expect(answer.bytes).toEqual(bytes);
      continue;
    }
    const { code, trailersOnly, error } = answer;
    expect({ code, trailersOnly, error }).toMatchObject({
      ...{ code: status.ABORTED, trailersOnly: true },
      error: { reason: 'REQUEST_IN_PROGRESS', domain: 'idempotency.v1' },
    });
    expect(error.retryDelayMs).toBeGreaterThan(0);
  }
}

async function expectReplay(client: StockClient, call: StockCall, { bytes }: StockAnswer): Promise<void> {
  const replay = await client.call(call);
  expect(replay.code).toBe(status.OK);
  expect(replay.bytes).toEqual(bytes);
  expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
}
