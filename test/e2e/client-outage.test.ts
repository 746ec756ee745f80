import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { credentials, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CHANNEL_OPTIONS } from '../../src/idempotency/client/channel-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import { type IdempotencyError, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient } from '../../src/payments/payments-client';
import { type AnsweringProcess, startAnsweringProcess } from '../support/answering-process';
import { failureOf } from '../support/failure-of';
import { countRetries, type EndedCall, meanAttempts, shareOkAtOnce, startCallers } from '../support/many-callers';
import { newPayment } from '../support/new-payment';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { rawClient } from '../support/scripted-server';
import { startTestService, type TestService } from '../support/service';
import { until } from '../support/until';

const CALLERS = 200;
const OUTAGE_MS = 30_000;
/** So long that every caller has a call on its way when the server dies, and so few calls that no machine is busy with it. */
const TAKES_MS = 2_000;

jest.setTimeout(OUTAGE_MS + 60_000);

const servers: AnsweringProcess[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.kill()));
});

/** The longest a call takes that says no time of its own, as documented. */
const DEFAULT_TIMEOUT_MS = 30_000;

/** A call without any time set, of a peer that accepts connections and never speaks; and how it ended. */
interface BlackHoleCall {
  readonly port: number;
  readonly request: ReturnType<typeof newPayment>;
  readonly requestId: string;
  readonly ended: Promise<{ readonly error: IdempotencyError; readonly tookMs: number }>;
}

let blackHoleCall: BlackHoleCall;

// It takes all of its time, and the outage below takes as long.
beforeAll(async () => {
  const sockets: Socket[] = [];
  const blackHole = createServer((socket) => sockets.push(socket.on('error', () => socket.destroy())));
  await new Promise<void>((resolve) => blackHole.listen(0, '127.0.0.1', resolve));
  const { port } = blackHole.address() as AddressInfo;
  const payments = createPaymentsClient(`127.0.0.1:${port}`, { credentials: credentials.createInsecure() });
  const [request, requestId, startedAt] = [newPayment(), newRequestId(), performance.now()];
  const ended = failureOf(payments.createPayment(request, { requestId })).then((error) => {
    const tookMs = performance.now() - startedAt;
    payments.close();
    for (const socket of sockets) socket.destroy();
    blackHole.close();
    return { error, tookMs };
  });
  blackHoleCall = { port, request, requestId, ended };
});

async function prepare(port: number): Promise<AnsweringProcess> {
  const server = await startAnsweringProcess({ port, takesMs: TAKES_MS });
  servers.push(server);
  return server;
}

/**
 * Nothing is shortened here: the times, the attempts, the budget and the channel options are those that users get. Without
 * the budget there were 1.5 attempts per call; with the times of grpc-js for reconnecting the first answer came 11 s late.
 */
test('an outage of 30 s with 200 callers: few attempts in it, and each is OK at the first one second after it', async () => {
  const before = await prepare(0);
  const port = await before.listen();
  const after = await prepare(port);
  const interceptor = createClientInterceptor({ policies: loadPolicies(descriptorSet) });
  const client = rawClient(`127.0.0.1:${port}`, [interceptor], CHANNEL_OPTIONS);
  const callers = startCallers(client, CALLERS, 0);
  const { calls } = callers;
  await until('every caller was answered', async () => calls.length >= CALLERS);
  const beganAt = performance.now();
  await before.kill();
  await delay(OUTAGE_MS);
  await after.listen();
  const endedAt = performance.now();
  const later = (): readonly EndedCall[] => calls.filter((call) => call.beganAt >= endedAt + 1_000);
  await until('500 calls have ended that began later', async () => later().length >= 500, 30_000);
  await callers.stop();
  client.client.close();

  const during = calls.filter((call) => call.endedAt > beganAt && call.beganAt < endedAt);
  // Each caller had a call on its way when the server died, and another that waited for it.
  expect(during.length).toBeGreaterThanOrEqual(2 * CALLERS - 10);
  expect(meanAttempts(during)).toBeLessThanOrEqual(1.2);
  const successes = calls.filter(({ isOk }) => isOk).length;
  expect(countRetries(calls)).toBeLessThanOrEqual(10 + 0.1 * successes);
  expect(countRetries(during)).toBeGreaterThanOrEqual(1);
  expect(shareOkAtOnce(later())).toBeGreaterThanOrEqual(0.99);
  // Those who waited for a connection got one soon.
  const firstAnswerAt = Math.min(
    ...calls.filter((call) => call.isOk && call.endedAt > endedAt).map((call) => call.endedAt),
  );
  expect(firstAnswerAt - endedAt).toBeLessThan(1_200 + TAKES_MS + 2_000);
});

// Case J4.
describe('a call without any time set, of a peer that accepts connections and never speaks', () => {
  let database: TestDatabase;
  let service: TestService | undefined;

  beforeAll(async () => {
    database = await createTestDatabase();
  });

  afterAll(async () => {
    await service?.stop();
    await database.drop();
  });

  it('ends after 30 s with its key, and is OK with one effect once a server speaks there', async () => {
    const { port, request, requestId, ended } = blackHoleCall;
    const { error, tookMs } = await ended;
    expect(tookMs).toBeGreaterThan(DEFAULT_TIMEOUT_MS - 100);
    expect(tookMs).toBeLessThan(DEFAULT_TIMEOUT_MS + 2_000);
    expect(error).toMatchObject({ code: status.DEADLINE_EXCEEDED, outcomeUnknown: true, retriable: true, requestId });

    const { connectionString } = database;
    service = await startTestService({ connectionString, environment: { GRPC_PORT: String(port) } });
    const payments = createPaymentsClient(`127.0.0.1:${port}`, { credentials: credentials.createInsecure() });
    const { payment } = await payments.createPayment(request, { requestId });
    payments.close();
    expect(payment?.orderId).toBe(request.orderId);
    expect(await database.count('payments')).toBe(1);
  });
});
