import { randomUUID } from 'node:crypto';
import { Client, credentials, status } from '@grpc/grpc-js';
import { service as healthService } from 'grpc-health-check';
import { startCommitProxy } from '../support/commit-proxy';
import { type MainProcess, startMainProcess } from '../support/main-process';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { statementsWaiting } from '../support/record-hold';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockCall, type StockClient } from '../support/stock-client';
import { until } from '../support/until';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

/** As many as the business pool has connections. */
const CALLS = 10;
/** What a caller is told whose connection is cut. */
const CUT: readonly number[] = [status.CANCELLED, status.UNAVAILABLE];
/** What a process may take to close what it has, beyond its grace. */
const CLOSING_MS = 5_000;

describe('SIGTERM (case N1)', () => {
  let database: TestDatabase;
  const opened: { close(): void }[] = [];
  const started: (ServiceProcess | MainProcess)[] = [];

  beforeEach(async () => {
    database = await createTestDatabase();
  });

  afterEach(async () => {
    for (const client of opened.splice(0)) client.close();
    for (const process of started.splice(0)) {
      process.kill('SIGKILL');
      await process.exited;
    }
    await database.drop();
  });

  it('lets running calls finish and be recorded, and takes no new ones', async () => {
    const service = await startService({});
    const client = connect(service.grpcPort);
    const answers = Array.from({ length: CALLS }, () => client.call(createPayment()));
    await service.authorizerAsked(CALLS);

    service.kill('SIGTERM');
    await notReady(service);
    expect((await connect(service.grpcPort).call(createPayment())).code).toBe(status.UNAVAILABLE);
    expect((await client.call(createPayment())).code).toBe(status.UNAVAILABLE);
    service.proceed();

    for (const answer of await Promise.all(answers)) expect(answer.code).toBe(status.OK);
    expect(await service.exited).toBe(0);
    await expectPaid(CALLS);
  });

  it('lets the payment of a caller who has hung up finish and be recorded', async () => {
    const service = await startService({});
    const hangUp = new AbortController();
    const cut = connect(service.grpcPort).call({ ...createPayment(), signal: hangUp.signal });
    await service.authorizerAsked(1);
    hangUp.abort();
    expect((await cut).code).toBe(status.CANCELLED);

    service.kill('SIGTERM');
    await notReady(service);
    // Nothing else keeps the process, so it would be gone by now.
    service.proceed();

    expect(await service.exited).toBe(0);
    await expectPaid(1);
  });

  it('waits for no one who only watches or idles, and a second one changes nothing', async () => {
    const graceMs = 30_000;
    const main = await startMain({ SHUTDOWN_GRACE_MS: String(graceMs) });
    const idle = connect(main.grpcPort);
    await idle.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
    await watchHealth(main.grpcPort);
    const client = connect(main.grpcPort);
    const unlock = await lockPayments();
    const answers = Array.from({ length: CALLS }, () => client.call(createPayment()));
    await statementsWaiting(database, CALLS);

    main.kill('SIGTERM');
    await notReady(main);
    main.kill('SIGTERM');
    await unlock();
    const unlockedAt = performance.now();

    for (const answer of await Promise.all(answers)) expect(answer.code).toBe(status.OK);
    expect(await main.exited).toBe(0);
    expect(performance.now() - unlockedAt).toBeLessThan(graceMs / 2);
    await expectPaid(CALLS);
  });

  it('ends the process when the grace is over and a handler still runs', async () => {
    const graceMs = 500;
    const service = await startService({ SHUTDOWN_GRACE_MS: String(graceMs) });
    const answer = connect(service.grpcPort).call(createPayment());
    await service.authorizerAsked(1);

    const askedAt = performance.now();
    service.kill('SIGTERM');

    expect(await service.exited).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(graceMs + CLOSING_MS);
    expect(CUT).toContain((await answer).code);
    expect(await database.count('payments')).toBe(0);
  });

  it('ends the leases of handlers that still run when the grace is over: a retry elsewhere runs at once (design 4.7)', async () => {
    const [hanging, other] = [await startService({ SHUTDOWN_GRACE_MS: '500' }), await startService({})];
    other.proceed();
    const pay = createPayment();
    const client = connect(other.grpcPort);
    const cut = connect(hanging.grpcPort).call(pay);
    await hanging.authorizerAsked(1);
    hanging.kill('SIGTERM');
    await notReady(hanging);
    expect((await client.call(pay)).error.reason).toBe('REQUEST_IN_PROGRESS');
    expect(CUT).toContain((await cut).code);
    expect(await hanging.exited).toBe(0);

    // The lease would be 30 seconds.
    const retried = await client.call(pay);

    expect(retried.code).toBe(status.OK);
    expect(retried.trailers.get('idempotent-replayed')).toEqual([]);
    await expectPaid(1);
    expect(await database.count('idempotency_record WHERE attempt = 2')).toBe(1);
  });

  it('ends the process when the grace is over and a transaction still waits for a lock', async () => {
    const graceMs = 500;
    const service = await startService({ SHUTDOWN_GRACE_MS: String(graceMs) });
    service.proceed();
    const unlock = await lockPayments();
    const answer = connect(service.grpcPort).call(createPayment());
    await statementsWaiting(database, 1);

    const askedAt = performance.now();
    service.kill('SIGTERM');

    expect(await service.exited).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(graceMs + CLOSING_MS);
    expect(CUT).toContain((await answer).code);
    await unlock();
    await until('the transaction of a process that is gone has ended', async () => (await openTransactions()) === 0);
    expect(await database.count('payments')).toBe(0);
  });

  it('ends the process in time although the database gives no answer any more, and says so by its exit code', async () => {
    const graceMs = 500;
    const proxy = await startCommitProxy(database.connectionString);
    opened.push(proxy);
    const main = await startMain({ SHUTDOWN_GRACE_MS: String(graceMs), DATABASE_URL: proxy.connectionString });
    const unlock = await lockPayments();
    const answer = connect(main.grpcPort).call(createPayment());
    await statementsWaiting(database, 1);
    proxy.freeze();

    const askedAt = performance.now();
    main.kill('SIGTERM');

    // Its leases could not be ended: they run out by themselves.
    expect(await main.exited).toBe(1);
    expect(performance.now() - askedAt).toBeLessThan(graceMs + CLOSING_MS);
    expect(CUT).toContain((await answer).code);
    await unlock();
    expect(await database.count('payments')).toBe(0);
    expect(await database.count("idempotency_record WHERE state = 'claimed'")).toBe(1);
  });

  async function startService(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
    const { connectionString } = database;
    const service = await startServiceProcess({ connectionString, authorizerWaits: true, environment });
    started.push(service);
    return service;
  }

  async function startMain(environment: Readonly<Record<string, string>>): Promise<MainProcess> {
    const main = await startMainProcess({ DATABASE_URL: database.connectionString, ...environment });
    started.push(main);
    return main;
  }

  function connect(port: number): StockClient {
    const client = createStockClient(port);
    opened.push(client);
    return client;
  }

  /** Opens a health stream that never ends by itself; resolves with its first message. */
  async function watchHealth(port: number): Promise<void> {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    opened.push(client);
    const watch = healthService['Watch'];
    if (watch === undefined) throw new Error('the health service has no Watch');
    const { path, requestSerialize, responseDeserialize } = watch;
    const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service: '' });
    stream.on('error', () => undefined);
    await new Promise((resolve) => stream.once('data', resolve));
  }

  /** Keeps every payment from being written until the returned function is called. */
  async function lockPayments(): Promise<() => Promise<void>> {
    const keeper = await database.pool.connect();
    await keeper.query('BEGIN');
    await keeper.query('LOCK TABLE payments IN EXCLUSIVE MODE');
    return async () => {
      await keeper.query('ROLLBACK');
      keeper.release();
    };
  }

  function openTransactions(): Promise<number> {
    return database.count(
      "pg_stat_activity WHERE datname = current_database() AND application_name = 'grpc-idempotency business'",
    );
  }

  async function expectPaid(count: number): Promise<void> {
    expect(await database.count('payments')).toBe(count);
    // The simulators keep the keys of their accounts beside those of our callers.
    const ours = `idempotency_record WHERE method = (
      SELECT id FROM idempotency_method WHERE path = '/payments.v1.PaymentsService/CreatePayment')`;
    expect(await database.count(`${ours} AND state = 'completed'`)).toBe(count);
    expect(await database.count(ours)).toBe(count);
  }
});

/** Resolves when a process says that it wants no more calls. */
function notReady({ opsPort }: ServiceProcess | MainProcess): Promise<void> {
  return until('the process is not ready', async () => !(await fetch(`http://127.0.0.1:${opsPort}/readyz`)).ok);
}

function createPayment(): StockCall {
  const requestId = randomUUID();
  return { method: 'CreatePayment', request: paymentRequest({ order_id: `order-${requestId}` }), requestId };
}
