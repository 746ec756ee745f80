import { credentials, status } from '@grpc/grpc-js';
import { type IdempotencyError, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { changedDescriptorSet } from '../support/descriptor-set';
import { failureOf } from '../support/failure-of';
import { newPayment } from '../support/new-payment';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';

// Calls that take all of their time, side by side, and processes that start slowly on a busy machine.
jest.setTimeout(90_000);

const DEADLINE_MS = 15_000;
const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: 2_000 } })).toString('base64');

/** A call that failed, and how long that took. */
interface Failed {
  readonly request: ReturnType<typeof newPayment>;
  readonly requestId: string;
  readonly error: IdempotencyError;
  readonly tookMs: number;
}

let database: TestDatabase;
/** Of the second process, which freezes and goes on when all calls have ended. */
let later: PaymentsClient;
const processes: ServiceProcess[] = [];
const clients: PaymentsClient[] = [];
let [midway, fromTheStart, inFrozen] = [] as unknown as [Failed, Failed, Failed];

beforeAll(async () => {
  database = await createTestDatabase();
  const [killed, second] = await Promise.all([start(), start()]);
  const underWay = [fail(connect(killed)), fail(connect(second))] as const;
  await Promise.all([killed.authorizerAsked(1), second.authorizerAsked(1)]);
  killed.kill('SIGKILL');
  second.kill('SIGSTOP');
  await killed.exited;
  [midway, inFrozen, fromTheStart] = await Promise.all([...underWay, fail(connect(killed))]);
  second.kill('SIGCONT');
  second.proceed();
  later = connect(second);
});

afterAll(async () => {
  for (const client of clients) client.close();
  for (const service of processes) service.kill('SIGKILL');
  await Promise.all(processes.map(({ exited }) => exited));
  await database.drop();
});

async function start(): Promise<ServiceProcess> {
  const { connectionString } = database;
  const service = await startServiceProcess({ connectionString, descriptorSet, authorizerWaits: true });
  processes.push(service);
  return service;
}

/** A client as it is shipped. */
function connect({ grpcPort }: ServiceProcess): PaymentsClient {
  const client = createPaymentsClient(`127.0.0.1:${grpcPort}`, { credentials: credentials.createInsecure() });
  clients.push(client);
  return client;
}

async function fail(payments: PaymentsClient): Promise<Failed> {
  const [request, requestId, startedAt] = [newPayment(), newRequestId(), performance.now()];
  const error = await failureOf(payments.createPayment(request, { requestId, timeoutMs: DEADLINE_MS }));
  return { request, requestId, error, tookMs: performance.now() - startedAt };
}

/** It took all of its time and no more, and says how to go on. */
function expectEndAtDeadline({ error, requestId, tookMs }: Failed): void {
  expect(tookMs).toBeGreaterThan(DEADLINE_MS - 100);
  expect(tookMs).toBeLessThan(DEADLINE_MS + 1_000);
  expect(error).toMatchObject({ why: 'deadline', retriable: true, requestId });
  expect(error.details).toMatch(/the same call may be sent again later, with the same request-id\)$/);
}

const countPayments = ({ request }: Failed): Promise<number> =>
  database.count(`payments WHERE order_id = '${request.orderId}'`);

/** Sent again with its key, it is paid, once. */
async function expectPaidOnce(failed: Failed): Promise<void> {
  await later.createPayment(failed.request, { requestId: failed.requestId });
  expect(await countPayments(failed)).toBe(1);
}

// Case J7.
describe('a server that never comes back: the call ends at its deadline of 15 s, with its key', () => {
  it('and was killed in mid-call: what became of it is unknown', async () => {
    expectEndAtDeadline(midway);
    expect(midway.error).toMatchObject({ code: status.UNAVAILABLE, outcomeUnknown: true, attempts: 2 });
    expect(midway.error.details).toContain('the outcome is unknown');
    expect(await countPayments(midway)).toBe(0);
    await expectPaidOnce(midway);
  });

  it('and was away when the call began', async () => {
    expectEndAtDeadline(fromTheStart);
    expect(fromTheStart.error).toMatchObject({ code: status.DEADLINE_EXCEEDED, attempts: 1 });
    expect(await countPayments(fromTheStart)).toBe(0);
    await expectPaidOnce(fromTheStart);
  });

  it('and is frozen in mid-call: what became of it is unknown, and it goes on to pay once', async () => {
    expectEndAtDeadline(inFrozen);
    expect(inFrozen.error).toMatchObject({ code: status.DEADLINE_EXCEEDED, outcomeUnknown: true, attempts: 2 });
    expect(inFrozen.error.details).toContain('the outcome is unknown');
    await expectPaidOnce(inFrozen);
  });
});
