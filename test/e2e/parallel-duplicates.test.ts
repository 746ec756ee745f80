import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { processMetric } from '../support/process-metric';
import { holdRecords } from '../support/record-hold';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockAnswer, type StockCall, type StockClient } from '../support/stock-client';
import { until } from '../support/until';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

/** A starved pool keeps whoever wants a connection of it for longer, five seconds. */
const READY_AGAIN_MS = 3_000;

/** Two processes on one database, each with a client of its own. */
interface Pair {
  readonly database: TestDatabase;
  readonly services: readonly ServiceProcess[];
  readonly clients: readonly [StockClient, StockClient];
  end(): Promise<void>;
}

interface PairOptions {
  /** `default_transaction_isolation` of the database. */
  readonly isolation?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** How long a handler takes, milliseconds. Default: no longer than it has to. */
  readonly handlerMs?: number;
}

describe('100 parallel calls with one key over two processes', () => {
  let pair: Pair;

  afterEach(() => pair.end());

  it('make one payment per key, and every caller is told its answer or to come again', async () => {
    pair = await startPair();
    await expectOneEffectPerRound(pair, 50);
  });

  it.each(['1', '2'])('do so with pools of %s, and the probes answer throughout (case K5)', async (size) => {
    const environment = { BUSINESS_POOL_SIZE: size, STORE_POOL_SIZE: size };
    pair = await startPair({ environment });
    const probes = startProbing(pair.services);
    await expectOneEffectPerRound(pair, 10);
    expect(await probes.stop()).toBeLessThan(READY_AGAIN_MS);
  });

  it('do so in a database whose transactions are REPEATABLE READ unless they say otherwise', async () => {
    pair = await startPair({ isolation: 'repeatable read' });
    await expectOneEffectPerRound(pair, 10);
  });
});

describe('50 parallel calls with one key over two processes whose handlers sleep (case A1)', () => {
  const [LANES, ROUNDS_OF_LANE, CALLS, LOOKS] = [4, 10, 50, 2];
  const rounds = LANES * ROUNDS_OF_LANE;
  let pair: Pair;

  beforeAll(async () => {
    pair = await startPair({ handlerMs: 300 });
  });

  afterAll(() => pair.end());

  it('make one payment per key in 40 rounds, and no caller is told of a fault', async () => {
    const lane = async (number: number): Promise<void> => {
      for (let round = 1; round <= ROUNDS_OF_LANE; round += 1) await expectOneEffect(pair, `${number}-${round}`, CALLS);
    };
    await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
    await expectEffects(pair, rounds);
  });

  it('are counted as so many executions, none of them a fault, and none is in flight any more', async () => {
    const sum = async (name: string, labels = ''): Promise<number> => {
      const [first, second] = await Promise.all(pair.services.map((service) => processMetric(service, name, labels)));
      return (first ?? NaN) + (second ?? NaN);
    };
    const arrived = rounds * (CALLS + LOOKS);
    expect(await sum('grpc_server_started_total')).toBe(arrived);
    await until('all calls have ended', async () => (await sum('grpc_server_handled_total')) === arrived);
    expect(await sum('grpc_server_handled_total', 'grpc_code="Unknown"')).toBe(0);
    expect(await sum('grpc_server_handled_total', 'grpc_code="Internal"')).toBe(0);
    expect(await sum('idempotency_execution_duration_seconds_count')).toBe(rounds);
    expect(await sum('idempotency_requests_total', 'outcome="claimed"')).toBe(rounds);
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

async function startPair({ isolation, environment = {}, handlerMs = 0 }: PairOptions = {}): Promise<Pair> {
  const database = await createTestDatabase();
  const { connectionString } = database;
  if (isolation !== undefined) {
    const name = new URL(connectionString).pathname.slice(1);
    await database.rows(`ALTER DATABASE ${name} SET default_transaction_isolation = '${isolation}'`);
  }
  const start = (): Promise<ServiceProcess> =>
    startServiceProcess({ connectionString, environment, authorizerDelayMs: handlerMs });
  const services = await Promise.all([start(), start()]);
  const [first, second] = services;
  const clients: Pair['clients'] = [createStockClient(first.grpcPort), createStockClient(second.grpcPort)];
  const end = async (): Promise<void> => {
    for (const client of clients) client.close();
    for (const service of services) service.kill('SIGKILL');
    await Promise.all(services.map(({ exited }) => exited));
    await database.drop();
  };
  return { database, services, clients, end };
}

async function expectOneEffectPerRound(pair: Pair, rounds: number): Promise<void> {
  for (let round = 1; round <= rounds; round += 1) await expectOneEffect(pair, String(round), 100);
  await expectEffects(pair, rounds);
}

async function expectOneEffect({ clients }: Pair, round: string, callCount: number): Promise<void> {
  const pay = createPayment(`order-${round}`);
  const calls = Array.from({ length: callCount }, (_, call) => clients[call % 2 === 0 ? 0 : 1].call(pay));
  const answers = await Promise.all(calls);
  const winner = answers.find(({ code }) => code === status.OK);
  if (winner === undefined) throw new Error(`round ${round} has no answer: ${answers[0]?.details}`);
  expectAnswerOrComeAgain(answers, winner);
  for (const client of clients) await expectReplay(client, pay, winner);
}

async function expectEffects({ database }: Pair, rounds: number): Promise<void> {
  expect(await database.count('payments')).toBe(rounds);
  expect(await database.count('(SELECT DISTINCT order_id FROM payments) AS orders')).toBe(rounds);
  expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(rounds);
  expect(await database.count('idempotency_record')).toBe(rounds);
}

/**
 * Asks all services for their metrics and whether they are ready, again and again. `stop` tells the longest time that one
 * of these was not answered with 200, milliseconds.
 */
function startProbing(services: readonly ServiceProcess[]): { stop(): Promise<number> } {
  let isOver = false;
  const isFine = (url: string): Promise<boolean> =>
    fetch(url, { signal: AbortSignal.timeout(READY_AGAIN_MS) }).then(
      (answer) => answer.ok,
      () => false,
    );
  const probe = async ({ opsPort }: ServiceProcess, path: string): Promise<number> => {
    let longestMs = 0;
    let fineAt = performance.now();
    do {
      const answered = await isFine(`http://127.0.0.1:${opsPort}/${path}`);
      longestMs = Math.max(longestMs, performance.now() - fineAt);
      if (answered) fineAt = performance.now();
    } while (!isOver && longestMs < READY_AGAIN_MS);
    return longestMs;
  };
  const probing = Promise.all(services.flatMap((service) => [probe(service, 'metrics'), probe(service, 'readyz')]));
  return {
    stop: async () => {
      isOver = true;
      return Math.max(...(await probing));
    },
  };
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
