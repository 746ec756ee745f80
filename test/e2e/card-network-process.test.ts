import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { callUntilAnswered } from '../support/call-until-answered';
import { type MainProcess, runMain, startMainProcess } from '../support/main-process';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, makeTemporaryDirectory, type TestDatabase } from '../support/postgres';
import { childrenOf, isAlive } from '../support/processes';
import { ROOT, runProgram, type RunningProgram } from '../support/run-program';
import { createStockClient, type StockAnswer, type StockCall } from '../support/stock-client';
import { until } from '../support/until';

// Two processes at a time on a busy machine.
jest.setTimeout(120_000);

const TOKEN = 'a-token-of-the-shop';

describe('the service and the simulators that it starts', () => {
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
  const simulatorOf = async ({ pid }: MainProcess, words: 'card-network' | 'receipts'): Promise<number> => {
    const [simulator, ...others] = await childrenOf(pid, words);
    if (simulator === undefined || others.length > 0) throw new Error('expected one simulator');
    return simulator;
  };
  const mailed = (call: StockCall) => until('the mail is sent', async () => (await database.count(mails(call))) === 1);

  it('are one command and one ready line; a payment is charged and its mail sent by others, and all end at SIGTERM', async () => {
    // Tokens of callers are not those of the mail service.
    const main = await start({ AUTH_MODE: 'tokens', AUTH_TOKENS_FILE: await tokensFile() });
    const simulators = [await simulatorOf(main, 'card-network'), await simulatorOf(main, 'receipts')];
    const call = { ...payment(), metadata: { authorization: `Bearer ${TOKEN}` } };
    expect((await pay(main, call)).code).toBe(status.OK);
    expect(await database.count('card_network_authorizations')).toBe(1);
    await mailed(call);
    const metrics = async () => (await fetch(`http://127.0.0.1:${main.opsPort}/metrics`)).text();
    await until('the delivery is counted', async () => /^outbox_delivered_total 1$/m.test(await metrics()));
    const printed = main
      .output()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{'));
    expect(printed).toEqual([expect.stringMatching(/^ready: /), expect.stringMatching(/^try: /)]);
    main.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    for (const simulator of simulators) expect(await isAlive(simulator)).toBe(false);
  });

  it('end together also where the service is killed, and payments go on where another one is started', async () => {
    const call = payment();
    const first = await start({ CARD_NETWORK_FAULTS: 'silence*' });
    const simulators = [await simulatorOf(first, 'card-network'), await simulatorOf(first, 'receipts')];
    const client = createStockClient(first.grpcPort);
    const cut = client.call(call);
    await until('the card was charged', async () => (await database.count(charges(call))) === 1);
    first.kill('SIGKILL');
    expect((await cut).code).toBe(status.UNAVAILABLE);
    client.close();
    for (const simulator of simulators) await gone(simulator);
    await database.rows("UPDATE idempotency_record SET lease_until = now() WHERE state = 'claimed'");
    const answer = await pay(await start(), call);
    expect(answer.code).toBe(status.OK);
    expect(await database.count(charges(call))).toBe(1);
  });

  it('a card network that ends by itself is started again where it was, without the faults that ended it', async () => {
    const main = await start({ CARD_NETWORK_FAULTS: 'crash_after' });
    const simulator = await simulatorOf(main, 'card-network');
    const client = createStockClient(main.grpcPort);
    const [paying, listed] = [payment(), { method: 'ListPayments', request: {} }];
    const paid = pay(main, paying);
    await main.printed(/the card network simulator has ended and is started again/);
    expect((await client.call(listed)).code).toBe(status.OK);
    client.close();
    expect((await paid).code).toBe(status.OK);
    expect(await database.count(charges(paying))).toBe(1);
    expect(await simulatorOf(main, 'card-network')).not.toBe(simulator);
    await main.printed(/the card network simulator was started again/);
  });

  it('a mail service that ends by itself is started again where it was, and the mail goes out once', async () => {
    const main = await start();
    process.kill(await simulatorOf(main, 'receipts'), 'SIGKILL');
    await main.printed(/the receipts simulator has ended and is started again/);
    const call = payment();
    expect((await pay(main, call)).code).toBe(status.OK);
    await mailed(call);
    // Also where it ends again.
    await main.printed(/the receipts simulator was started again/);
    process.kill(await simulatorOf(main, 'receipts'), 'SIGKILL');
    const another = payment();
    expect((await pay(main, another)).code).toBe(status.OK);
    await mailed(another);
    main.kill('SIGINT');
    expect(await main.exited).toBe(0);
  });

  it('what they are told wrongly is refused with all other settings, and none of them is started', async () => {
    const main = runMain({
      ...{ DATABASE_URL: database.connectionString, CARD_NETWORK_FAULTS: 'lost_anser*3' },
      ...{ RECEIPTS_PORT: '70000', LOG_LEVEL: 'loud' },
    });
    runs.push(main);
    expect(await main.exited).toBe(1);
    expect(main.output().trim().split('\n')).toEqual([
      'settings that cannot be used:',
      expect.stringMatching(/^ {2}CARD_NETWORK_FAULTS is "lost_anser\*3": expected a list such as /),
      expect.stringMatching(/^ {2}RECEIPTS_PORT is "70000": expected a whole number /),
      expect.stringMatching(/^ {2}LOG_LEVEL is "loud": /),
    ]);
  });

  it('one that cannot start says why, and the service is not started', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const main = runMain({ DATABASE_URL: database.connectionString, RECEIPTS_PORT: String(port) });
    runs.push(main);
    expect(await main.exited).toBe(1);
    taken.close();
    expect(main.output().trim().split('\n')).toEqual([
      `The port ${port} on 127.0.0.1 is in use by another process. Stop that process, or set RECEIPTS_PORT to another port.`,
      expect.stringMatching(/^The simulator .*receipts.main could not be started \(1\): see above\.$/),
    ]);
  });

  it.each([
    ['card-network', 'CARD_NETWORK_PORT'],
    ['receipts', 'RECEIPTS_PORT'],
  ])('by itself %s says in one line that its port is taken', async (folder, variable) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const simulator = runProgram(['--import', 'tsx', `${ROOT}/src/${folder}/main.ts`], {
      ...{ DATABASE_URL: database.connectionString, [variable]: String(port) },
    });
    runs.push(simulator);
    expect(await simulator.exited).toBe(1);
    taken.close();
    expect(simulator.output()).toBe(
      `The port ${port} on 127.0.0.1 is in use by another process. Stop that process, or set ${variable} to another port.\n`,
    );
  });

  it('a card network of its own is used where CARD_NETWORK_ADDRESS names it, and no other is started', async () => {
    const network = runProgram(['--import', 'tsx', `${ROOT}/src/card-network/main.ts`], {
      DATABASE_URL: database.connectionString,
      CARD_NETWORK_DECLINES: '1',
    });
    runs.push(network);
    const [, address = ''] = await network.printed(/^ready: the card network simulator on (.*)$/m);
    const main = await start({ CARD_NETWORK_ADDRESS: address });
    expect(await childrenOf(main.pid, 'card-network')).toEqual([]);
    expect(await pay(main, payment())).toMatchObject({ error: { reason: 'CARD_DECLINED' } });
    main.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    network.kill('SIGTERM');
    expect(await network.exited).toBe(0);
  });
});

/** An account that may pay. */
async function tokensFile(): Promise<string> {
  const file = join(await makeTemporaryDirectory(), 'accounts.json');
  await writeFile(file, JSON.stringify({ tokens: { [TOKEN]: 'shop-1' } }), { mode: 0o600 });
  return file;
}

/** The mails of an order. */
function mails({ request }: StockCall): string {
  return `receipt_mails WHERE order_id = '${(request as { readonly order_id: string }).order_id}'`;
}

/** The charges of an order that is being paid or was. */
function charges({ request }: StockCall): string {
  const { order_id: order } = request as { readonly order_id: string };
  return `card_network_authorizations WHERE reference IN (
    SELECT payment_id::text FROM payment_drafts WHERE order_id = '${order}'
    UNION ALL SELECT payment_id::text FROM payments WHERE order_id = '${order}')`;
}
