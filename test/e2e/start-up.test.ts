import { randomUUID } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { status } from '@grpc/grpc-js';
import { notedPostgres, postgresStopped, removeDataDirectory } from '../support/data-directory';
import { type MainProcess, runMain, startMainProcess } from '../support/main-process';
import { paymentRequest } from '../support/payment-requests';
import { makeTemporaryDirectory } from '../support/postgres';
import { isAlive } from '../support/processes';
import type { RunningProgram } from '../support/run-program';
import { createStockClient, type StockAnswer, type StockCall } from '../support/stock-client';

/** A new database on a busy machine. */
jest.setTimeout(60_000);

describe('the service with a database of its own', () => {
  let dataDirectory: string;
  const runs: RunningProgram[] = [];

  beforeAll(async () => (dataDirectory = await makeTemporaryDirectory()));
  afterEach(async () => {
    for (const run of runs.splice(0)) {
      run.kill('SIGKILL');
      await run.exited;
    }
    await postgresStopped(dataDirectory);
  });
  afterAll(() => removeDataDirectory(dataDirectory));

  const pay: StockCall = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
  let paid: StockAnswer;

  it('starts in an empty directory, says so and what to try, and stops with its database at SIGTERM', async () => {
    const service = await start();
    expect(service.output()).toMatch(/^try: {3}PAYMENTS_ADDRESS=127\.0\.0\.1:\d+ node examples\/first-payment\.js$/m);
    paid = await call(service, pay);
    expect(paid.code).toBe(status.OK);
    await expectCleanStop(service, 'SIGTERM');
  });

  it('finds its payments after a restart; refuses to be started twice; leaves no database behind a crash', async () => {
    const service = await start();
    await expectPaymentFound(service);

    const second = await run({ GRPC_PORT: String(service.grpcPort), OPS_PORT: String(service.opsPort) });
    expect(await second.exited).toBe(1);
    expect(second.output().trim().split('\n')).toEqual([
      expect.stringContaining(`The port ${service.grpcPort} on 127.0.0.1 is in use by another process.`),
      expect.stringContaining(`The port ${service.opsPort} on 127.0.0.1 is in use by another process.`),
      expect.stringContaining(`The data directory ${dataDirectory} is in use by another running process.`),
    ]);
    await expectPaymentFound(service);

    const postgres = await notedPostgres(dataDirectory);
    service.kill('SIGKILL');
    await postgresStopped(dataDirectory, postgres);
  });

  it('refuses the data directory alone, and the one who has it does not notice', async () => {
    const service = await start();
    const second = await run({});
    expect(await second.exited).toBe(1);
    expect(second.output().trim()).toBe(
      `The data directory ${dataDirectory} is in use by another running process. Stop that one, or set DATA_DIRECTORY ` +
        'to another directory.',
    );
    await expectPaymentFound(service);
    await expectCleanStop(service, 'SIGINT');
  });

  async function start(): Promise<MainProcess> {
    const service = await startMainProcess({ DATA_DIRECTORY: dataDirectory });
    runs.push(service);
    return service;
  }

  async function run(environment: Readonly<Record<string, string>>): Promise<RunningProgram> {
    const started = runMain({ DATA_DIRECTORY: dataDirectory, ...environment });
    runs.push(started);
    return started;
  }

  async function expectPaymentFound(service: MainProcess): Promise<void> {
    const paymentId = paid.response?.payment.payment_id;
    const found = await call(service, { method: 'GetPayment', request: { payment_id: paymentId } });
    expect(found.bytes).toEqual(paid.bytes);
    const replayed = await call(service, pay);
    expect(replayed.bytes).toEqual(paid.bytes);
    expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
  }

  async function expectCleanStop(service: MainProcess, signal: NodeJS.Signals): Promise<void> {
    const postgres = (await notedPostgres(dataDirectory)) ?? NaN;
    expect(await isAlive(postgres)).toBe(true);
    service.kill(signal);
    expect(await service.exited).toBe(0);
    expect(await notedPostgres(dataDirectory)).toBeUndefined();
    // It says that it has stopped a moment before it is gone.
    await postgresStopped(dataDirectory, postgres);
  }
});

describe('a data directory that only its owner may enter', () => {
  let dataDirectory: string;
  beforeAll(async () => {
    dataDirectory = await makeTemporaryDirectory();
    await chmod(dataDirectory, 0o700);
  });
  afterAll(() => removeDataDirectory(dataDirectory));

  it('is as good as any, and a service that is stopped while it starts leaves nothing running', async () => {
    const stopped = runMain({ DATA_DIRECTORY: dataDirectory });
    await stopped.printed(/A new database was created/);
    stopped.kill('SIGTERM');
    expect(await stopped.exited).toBe(0);
    expect(await notedPostgres(dataDirectory)).toBeUndefined();

    const service = await startMainProcess({ DATA_DIRECTORY: dataDirectory });
    const postgres = (await notedPostgres(dataDirectory)) ?? NaN;
    service.kill('SIGTERM');
    expect(await service.exited).toBe(0);
    expect(await notedPostgres(dataDirectory)).toBeUndefined();
    await postgresStopped(dataDirectory, postgres);
  });
});

async function call(service: MainProcess, stockCall: StockCall): Promise<StockAnswer> {
  const client = createStockClient(service.grpcPort);
  try {
    return await client.call(stockCall);
  } finally {
    client.close();
  }
}
