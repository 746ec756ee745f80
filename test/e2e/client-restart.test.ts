import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { credentials, status } from '@grpc/grpc-js';
import { type CallEnd, newRequestId } from '../../src/idempotency/index';
import {
  createPaymentsClient,
  type PaymentsClient,
  type PaymentsClientOptions,
} from '../../src/payments/payments-client';
import { changedDescriptorSet } from '../support/descriptor-set';
import { failureOf } from '../support/failure-of';
import { newPayment } from '../support/new-payment';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import {
  type PreparedService,
  prepareServiceProcess,
  type ServiceProcess,
  type ServiceProcessOptions,
  startServiceProcess,
} from '../support/service-process';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(120_000);

const LEASE_MS = 2_000;
const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString('base64');

let database: TestDatabase;
let port: number;
const processes: ServiceProcess[] = [];
const prepared: PreparedService[] = [];
const clients: PaymentsClient[] = [];

beforeEach(async () => {
  [database, port] = await Promise.all([createTestDatabase(), freePort()]);
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  const running = processes.splice(0);
  for (const service of running) service.kill('SIGKILL');
  for (const next of prepared.splice(0)) next.kill();
  await Promise.all(running.map(({ exited }) => exited));
  await database.drop();
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: free } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return free;
}

type StartOptions = Pick<ServiceProcessOptions, 'authorizerWaits' | 'environment'>;

const withPort = (options: StartOptions): ServiceProcessOptions => ({
  ...{ connectionString: database.connectionString, descriptorSet, ...options },
  environment: { GRPC_PORT: String(port), ...options.environment },
});

async function start(options: StartOptions = {}): Promise<ServiceProcess> {
  const service = await startServiceProcess(withPort(options));
  processes.push(service);
  return service;
}

/** The process that comes after: how long its code takes to load is the machine's affair and no part of an outage. */
async function prepareNext(): Promise<() => Promise<ServiceProcess>> {
  const next = await prepareServiceProcess(withPort({}));
  prepared.push(next);
  return async () => {
    const service = await next.start();
    processes.push(service);
    return service;
  };
}

function connect(options: Partial<PaymentsClientOptions> = {}): PaymentsClient {
  const client = createPaymentsClient(`127.0.0.1:${port}`, { credentials: credentials.createInsecure(), ...options });
  clients.push(client);
  return client;
}

// Case J7.
test('a server that is killed in mid-call and is back after 3 s: a keyed call ends OK, with one effect', async () => {
  const [service, startNext] = await Promise.all([start({ authorizerWaits: true }), prepareNext()]);
  const payments = connect();
  const ends: CallEnd[] = [];
  const call = payments.createPayment(newPayment(), {
    ...{ requestId: newRequestId(), timeoutMs: 15_000, onEnd: (end: CallEnd) => void ends.push(end) },
  });
  await service.authorizerAsked(1);
  service.kill('SIGKILL');
  await delay(3_000);
  await startNext();
  expect((await call).payment?.state).toBeDefined();
  expect(await database.count('payments')).toBe(1);
  expect(await database.count("idempotency_record WHERE state = 'completed' AND attempt = 2")).toBe(1);
  // The one that was killed, and one once it was back: none was used up by waiting. One more if the lease still ran.
  expect(ends[0]?.attempts).toBeLessThanOrEqual(3);
});

test('a call that begins while the server is away waits for it, as one attempt', async () => {
  const [service, startNext] = await Promise.all([start(), prepareNext()]);
  const payments = connect({ attemptTimeoutMs: 3_000, timeoutMs: 15_000 });
  await payments.listPayments({ pageSize: 1, pageToken: '', orderId: '' });
  service.kill('SIGKILL');
  await service.exited;
  const ends: CallEnd[] = [];
  const onEnd = (end: CallEnd) => void ends.push(end);
  const call = payments.createPayment(newPayment(), { requestId: newRequestId(), onEnd });
  await delay(1_500);
  await startNext();
  await call;
  // One more if the attempt that left at last had waited for most of its time.
  expect(ends[0]?.attempts).toBeLessThanOrEqual(2);
});

test('a server that is killed in mid-call: a keyless call ends with the refusal, after one attempt', async () => {
  const service = await start({ authorizerWaits: true });
  const payments = connect();
  await payments.listPayments({ pageSize: 1, pageToken: '', orderId: '' });
  const ends: CallEnd[] = [];
  // Without its key it would be refused before it could be cut.
  service.kill('SIGSTOP');
  const call = payments.createPayment(newPayment(), { timeoutMs: 15_000, onEnd: (end) => void ends.push(end) });
  await delay(100);
  service.kill('SIGKILL');
  const error = await failureOf(call);
  expect(error).toMatchObject({ code: status.UNAVAILABLE, why: 'no_request_id', attempts: 1, outcomeUnknown: true });
  expect(error.details).toMatch(/^retry refused: no request-id\. Send metadata request-id with \/payments/);
  expect(ends[0]?.attempts).toBe(1);
  await start();
  expect(await database.count('payments')).toBe(0);
});

// Case J4.
test('a server that freezes in mid-call: finite time, and OK with one effect once it goes on', async () => {
  const service = await start({ authorizerWaits: true });
  const payments = connect({ attemptTimeoutMs: 300 });
  const [request, requestId] = [newPayment(), newRequestId()];
  const call = failureOf(payments.createPayment(request, { requestId, timeoutMs: 1_500 }));
  await service.authorizerAsked(1);
  service.kill('SIGSTOP');
  const error = await call;
  expect(error).toMatchObject({ outcomeUnknown: true, requestId, retriable: true });
  service.kill('SIGCONT');
  service.proceed();
  await payments.createPayment(request, { requestId });
  expect(await database.count('payments')).toBe(1);
});

// Case J8.
test('a server that is shut down by force in mid-call, and started again: OK with one effect', async () => {
  const [service, startNext] = await Promise.all([
    start({ authorizerWaits: true, environment: { SHUTDOWN_GRACE_MS: '1' } }),
    prepareNext(),
  ]);
  const payments = connect({ timeoutMs: 15_000 });
  const call = payments.createPayment(newPayment(), { requestId: newRequestId() });
  await service.authorizerAsked(1);
  service.kill('SIGTERM');
  await delay(500);
  service.kill('SIGKILL');
  await service.exited;
  await startNext();
  await call;
  expect(await database.count('payments')).toBe(1);
});
