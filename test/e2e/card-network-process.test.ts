import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { callUntilAnswered } from '../support/call-until-answered';
import { type MainProcess, startMainProcess } from '../support/main-process';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { childrenOf, isAlive } from '../support/processes';
import { ROOT, runProgram, type RunningProgram } from '../support/run-program';
import { createStockClient, type StockAnswer, type StockCall } from '../support/stock-client';
import { until } from '../support/until';

// Two processes at a time on a busy machine.
jest.setTimeout(120_000);

const SIMULATOR = 'card-network';

describe('the service and the card network simulator that it starts', () => {
  let database: TestDatabase;
  const runs: RunningProgram[] = [];

  beforeAll(async () => (database = await createTestDatabase()));
  afterEach(async () => {
    for (const run of runs.splice(0)) {
      run.kill('SIGKILL');
      await run.exited;
    }
  });
  afterAll(() => database.drop());

  const start = async (environment: Readonly<Record<string, string>> = {}): Promise<MainProcess> => {
    const main = await startMainProcess({ DATABASE_URL: database.connectionString, ...environment });
    runs.push(main);
    return main;
  };
  const payment = (): StockCall => ({
    ...{ method: 'CreatePayment', request: paymentRequest(), requestId: newRequestId() },
  });
  const pay = async ({ grpcPort }: MainProcess, call: StockCall): Promise<StockAnswer> => {
    const client = createStockClient(grpcPort);
    const { answer } = await callUntilAnswered(client, call, { withinMs: 30_000 });
    client.close();
    return answer;
  };
  const gone = (pid: number) => until('the simulator has ended', async () => !(await isAlive(pid)));
  const simulatorOf = async ({ pid }: MainProcess): Promise<number> => {
    const [simulator, ...others] = await childrenOf(pid, SIMULATOR);
    if (simulator === undefined || others.length > 0) throw new Error('expected one simulator');
    return simulator;
  };

  it('are one command and one ready line; a payment is charged in the other process, and both end at SIGTERM', async () => {
    const main = await start();
    const simulator = await simulatorOf(main);
    expect((await pay(main, payment())).code).toBe(status.OK);
    expect(await database.count('card_network_authorizations')).toBe(1);
    const printed = main
      .output()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{'));
    expect(printed).toEqual([expect.stringMatching(/^ready: /), expect.stringMatching(/^try: /)]);
    main.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    expect(await isAlive(simulator)).toBe(false);
  });

  it('end together also where the service is killed, and payments go on where another one is started', async () => {
    const call = payment();
    const first = await start({ CARD_NETWORK_FAULTS: 'silence*' });
    const simulator = await simulatorOf(first);
    const client = createStockClient(first.grpcPort);
    const cut = client.call(call);
    await until('the card was charged', async () => (await database.count(charges(call))) === 1);
    first.kill('SIGKILL');
    expect((await cut).code).toBe(status.UNAVAILABLE);
    client.close();
    await gone(simulator);
    await database.rows("UPDATE idempotency_record SET lease_until = now() WHERE state = 'claimed'");
    const answer = await pay(await start(), call);
    expect(answer.code).toBe(status.OK);
    expect(await database.count(charges(call))).toBe(1);
  });

  it('a simulator that ends by itself leaves the service running: payments are UNAVAILABLE, and the log says why', async () => {
    const main = await start();
    process.kill(await simulatorOf(main), 'SIGKILL');
    await main.printed(/the card network simulator has ended/);
    const client = createStockClient(main.grpcPort);
    expect(await client.call(payment())).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'CARD_NETWORK_UNAVAILABLE' },
    });
    expect((await client.call({ method: 'ListPayments', request: {} })).code).toBe(status.OK);
    client.close();
  });

  it('a card network of its own is used where CARD_NETWORK_ADDRESS names it, and no other is started', async () => {
    const network = runProgram(['--import', 'tsx', `${ROOT}/src/card-network/main.ts`], {
      DATABASE_URL: database.connectionString,
      CARD_NETWORK_DECLINES: '1',
    });
    runs.push(network);
    const [, address = ''] = await network.printed(/^ready: the card network simulator on (.*)$/m);
    const main = await start({ CARD_NETWORK_ADDRESS: address });
    expect(await childrenOf(main.pid, SIMULATOR)).toEqual([]);
    expect(await pay(main, payment())).toMatchObject({ error: { reason: 'CARD_DECLINED' } });
    main.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    network.kill('SIGTERM');
    expect(await network.exited).toBe(0);
  });
});

/** The charges of an order that is being paid or was. */
function charges({ request }: StockCall): string {
  const { order_id: order } = request as { readonly order_id: string };
  return `card_network_authorizations WHERE reference IN (
    SELECT payment_id::text FROM payment_drafts WHERE order_id = '${order}'
    UNION ALL SELECT payment_id::text FROM payments WHERE order_id = '${order}')`;
}
