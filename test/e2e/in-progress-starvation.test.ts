import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type NarrowProcess, startNarrowProcess } from '../support/narrow-process';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const ROUNDS = 5;
const DUPLICATES = 30;
const OTHERS = 10;
/** How long a handler works before it completes, milliseconds. */
const WORK_MS = 300;
/** No round takes longer, milliseconds. */
const BOUND_MS = 15_000;
/** Longer than a round. */
const LONG_MS = 60_000;

/** What the services of a database are like, one per process, and what a duplicate may be told. */
interface Variant {
  readonly duplicates: string;
  readonly poolSize: number;
  readonly maxWaitMs: number;
  readonly told: readonly string[];
}

const VARIANTS: readonly Variant[] = [1, 2].flatMap((poolSize) => [
  { duplicates: 'come back', poolSize, maxWaitMs: 0, told: ['OK', 'REQUEST_IN_PROGRESS'] },
  { duplicates: 'wait', poolSize, maxWaitMs: LONG_MS, told: ['OK'] },
]);

describe('two processes whose handlers ask the database on a client of their own starve nobody', () => {
  let databases: readonly TestDatabase[] = [];
  let processes: readonly NarrowProcess[] = [];

  beforeAll(async () => {
    databases = await Promise.all(VARIANTS.map(() => createTestDatabase()));
    const services = VARIANTS.map(({ poolSize, maxWaitMs }, index) => ({
      ...{ connectionString: databases[index]?.connectionString ?? '', poolSize, maxWaitMs, workMs: WORK_MS },
    }));
    processes = await Promise.all([startNarrowProcess(services), startNarrowProcess(services)]);
  });

  afterAll(async () => {
    for (const process of processes) await process.kill();
    for (const database of databases) await database.drop();
  });

  it.each(VARIANTS.map((variant, index) => ({ ...variant, index })))(
    'with pools of $poolSize, where duplicates $duplicates (design 4.4, case K5)',
    async ({ index, told }) => {
      const database = databases[index] as TestDatabase;
      const clients = processes.map(({ ports }) => createStockClient(ports[index] ?? 0));
      for (let round = 1; round <= ROUNDS; round += 1) await expectNobodyStarves(database, clients, told, round);
      for (const client of clients) client.close();
      expect(await database.count('payments')).toBe(ROUNDS * (1 + OTHERS));
    },
  );

  it('and end in good order, without a fault', async () => {
    expect(await Promise.all(processes.map((process) => process.stop()))).toEqual([[], []]);
  });
});

async function expectNobodyStarves(
  database: TestDatabase,
  clients: readonly StockClient[],
  mayBeTold: readonly string[],
  round: number,
): Promise<void> {
  const [requestId, one, other] = [randomUUID(), `one-${round}`, `other-${round}`];
  const pay = (caller: number, order: string, key: string): Promise<StockAnswer> =>
    (clients[caller % clients.length] as StockClient).call({
      ...{ method: 'CreatePayment', request: paymentRequest({ order_id: order }), requestId: key },
    });
  const startedAt = performance.now();
  const [duplicates, others] = await Promise.all([
    Promise.all(Array.from({ length: DUPLICATES }, (_, caller) => pay(caller, one, requestId))),
    Promise.all(Array.from({ length: OTHERS }, (_, caller) => pay(caller, other, randomUUID()))),
  ]);

  expect(performance.now() - startedAt).toBeLessThan(BOUND_MS);
  expect(others.map(toldOf)).toEqual(Array(OTHERS).fill('OK'));
  expect(duplicates.map(toldOf).filter((told) => !mayBeTold.includes(told))).toEqual([]);
  const answers = duplicates.filter(({ code }) => code === status.OK);
  expect(new Set(answers.map(({ bytes }) => bytes?.toString('hex'))).size).toBe(1);
  expect(await database.count(`payments WHERE order_id = '${one}'`)).toBe(1);
  expect(await database.count(`payments WHERE order_id = '${other}'`)).toBe(OTHERS);
}

function toldOf({ code, error }: StockAnswer): string {
  return error.reason ?? status[code];
}
