import { setTimeout as delay } from 'node:timers/promises';
import { credentials } from '@grpc/grpc-js';
import { IdempotencyError, newRequestId, readErrorDetails } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { changedDescriptorSet } from '../support/descriptor-set';
import { newPayment } from '../support/new-payment';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(120_000);

const CALLS_PER_SECOND = 20;
const GAP_MS = 5_000;
/** What was half done and could not be let go while the database was away waits for the end of its lease. */
const LEASE_MS = 6_000;
/** How long calls are begun before the database goes, and after it is back. */
const AROUND_MS = 2_000;
/** All that were begun have their answer so long after the database is back. */
const ALL_OK_WITHIN_MS = 20_000;
/** What a caller waits who is told to send the same call again later. */
const LATER_MS = 500;

/** What a caller may be told while the database goes and comes, and nothing else. */
const COME_AGAIN: ReadonlySet<string | undefined> = new Set(['STORE_UNAVAILABLE', 'REQUEST_IN_PROGRESS', 'CLAIM_LOST']);

/** An intent that was paid. */
interface Paid {
  readonly requestId: string;
  readonly paymentId: string | undefined;
  /** The failures that its caller was told before. */
  readonly failures: readonly IdempotencyError[];
}

let database: OwnPostgres;
let service: ServiceProcess;
let payments: PaymentsClient;

beforeAll(async () => {
  database = await startOwnPostgres();
  service = await startServiceProcess({
    connectionString: database.connectionString,
    descriptorSet: Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString('base64'),
  });
  payments = createPaymentsClient(`127.0.0.1:${service.grpcPort}`, { credentials: credentials.createInsecure() });
});

afterAll(async () => {
  payments.close();
  service.kill('SIGKILL');
  await service.exited;
  await database.drop();
});

/** Pays with the client as it is shipped. Where that gives up, the caller does what the error says. */
async function pay(): Promise<Paid> {
  const [request, requestId] = [newPayment(), newRequestId()];
  const failures: IdempotencyError[] = [];
  for (;;) {
    try {
      const { payment } = await payments.createPayment(request, { requestId });
      return { requestId, paymentId: payment?.paymentId, failures };
    } catch (error) {
      if (!(error instanceof IdempotencyError) || !error.retriable || error.requestId !== requestId) throw error;
      failures.push(error);
      await delay(LATER_MS);
    }
  }
}

/** Begins so many calls a second, whatever becomes of them. */
function startCalls() {
  const calls: Promise<Paid>[] = [];
  const timer = setInterval(() => void calls.push(pay()), 1_000 / CALLS_PER_SECOND);
  return {
    end: (): Promise<readonly Paid[]> => {
      clearInterval(timer);
      return Promise.all(calls);
    },
  };
}

// Case K8.
test('a database that cuts all connections, and is gone for 5 s under 20 calls a second: each key is paid once', async () => {
  const { pid } = service.process;
  await pay();
  const calls = startCalls();
  await delay(AROUND_MS);
  await database.rows(`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`);
  await delay(AROUND_MS / 4);
  await database.stopServer();
  await delay(GAP_MS);
  await database.startServer();
  const backAt = performance.now();
  await delay(AROUND_MS);
  const paid = await calls.end();

  expect(performance.now() - backAt).toBeLessThan(ALL_OK_WITHIN_MS);
  // Most of those that were due were begun: the calls went on while the database was away.
  expect(paid.length).toBeGreaterThan((CALLS_PER_SECOND * (GAP_MS + 2 * AROUND_MS)) / 1_000 / 2);
  expect(new Set(paid.map(({ paymentId }) => paymentId)).size).toBe(paid.length);
  const failures = paid.flatMap((one) => one.failures);
  expect(failures.length).toBeGreaterThan(0);
  const reasons = new Set(failures.map(({ metadata }) => readErrorDetails(metadata).reason));
  expect([...reasons].filter((reason) => !COME_AGAIN.has(reason))).toEqual([]);
  expect([service.process.exitCode, service.process.pid]).toEqual([null, pid]);
  expect(await database.count('payments')).toBe(paid.length + 1);
  expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(paid.length + 1);
});
