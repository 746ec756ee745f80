import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { payAndComplete, startAttemptService } from '../support/attempt-service';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { callUntilAnswered } from '../support/call-until-answered';
import { startCuttingProxy } from '../support/cutting-proxy';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestService, type TestService, type TestServiceOptions } from '../support/service';
import { createStockClient, type StockCall, type StockClient } from '../support/stock-client';

const CLIENT_WAITS_MS = 300;
const AUTHORIZER_TAKES_MS = 600;

const slowAuthorizer = (takesMs: number) => ({
  ...createStandInAuthorizer(),
  authorize: async (...request: Parameters<ReturnType<typeof createStandInAuthorizer>['authorize']>) => {
    await delay(takesMs);
    return createStandInAuthorizer().authorize(...request);
  },
});

describe('a client that stops waiting (design 4.7; case D3)', () => {
  let database: TestDatabase;
  let service: TestService;
  let client: StockClient;

  const start = async (options: Omit<TestServiceOptions, 'connectionString'>): Promise<void> => {
    service = await startTestService({ connectionString: database.connectionString, ...options });
    client = createStockClient(service.grpcPort);
  };

  beforeEach(async () => {
    database = await createTestDatabase();
  });

  afterEach(async () => {
    client.close();
    await service.stop();
    await database.drop();
  });

  it('at its deadline, and retries with its key, gets the recorded answer of the one payment', async () => {
    await start({ authorizer: slowAuthorizer(AUTHORIZER_TAKES_MS) });
    const pay = createPayment('order-1');

    expect((await client.call({ ...pay, deadlineMs: CLIENT_WAITS_MS })).code).toBe(status.DEADLINE_EXCEEDED);
    const { answer, refusals } = await callUntilAnswered(client, pay);

    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(refusals.length).toBeGreaterThan(0);
    for (const { error } of refusals) expect(error.reason).toBe('REQUEST_IN_PROGRESS');
    expect(await paymentsOf(database)).toEqual([answer.response?.payment.payment_id]);
    expect(await database.count("idempotency_record WHERE state = 'completed' AND attempt = 1")).toBe(1);
    const metrics = await service.metrics();
    const counted = (name: string, label: string) =>
      new RegExp(`^${name}\\{.*grpc_method="CreatePayment",${label}\\} 1$`, 'm');
    expect(metrics).toMatch(counted('idempotency_requests_total', 'outcome="claimed"'));
    expect(metrics).toMatch(counted('idempotency_requests_total', 'outcome="replayed"'));
    expect(metrics).toMatch(counted('idempotency_replays_total', 'grpc_code="OK"'));
  });

  it('at its deadline, and retries without a key what is declared to need none, pays twice', async () => {
    const descriptorSet = changedDescriptorSet({ CreatePayment: { level: 'IDEMPOTENT' } });
    await start({});
    const keyless = await startAttemptService({ descriptorSet });
    keyless.handle({
      createPayment: async (request, attempt) => {
        await delay(AUTHORIZER_TAKES_MS);
        return payAndComplete(request, attempt);
      },
    });
    const pay = { ...createPayment('order-1'), requestId: undefined };

    expect((await keyless.pay({ ...pay, deadlineMs: CLIENT_WAITS_MS })).code).toBe(status.DEADLINE_EXCEEDED);
    expect((await keyless.pay(pay)).code).toBe(status.OK);

    expect(await keyless.database.count("payments WHERE order_id = 'order-1'")).toBe(2);
    expect(await keyless.database.count('idempotency_record')).toBe(0);
    await keyless.stop();
  });

  it('by hanging up while the handler runs does not stop it: its answer is there for the retry', async () => {
    const gate = createAuthorizerGate();
    await start({ authorizer: gate.authorizer });
    const pay = createPayment('order-1');
    const hangUp = new AbortController();

    const cut = client.call({ ...pay, signal: hangUp.signal });
    await gate.asked(1);
    hangUp.abort();
    expect((await cut).code).toBe(status.CANCELLED);
    expect((await client.call(pay)).error.reason).toBe('REQUEST_IN_PROGRESS');
    gate.answer(1);
    const { answer } = await callUntilAnswered(client, pay);

    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await paymentsOf(database)).toEqual([answer.response?.payment.payment_id]);
    expect(gate.timesAsked()).toBe(1);
  });

  it('since its connection is cut around the commit gets the one answer from the retry, whenever the cut came', async () => {
    const rounds = 40;
    const authorizerTakesMs = 20;
    await start({ authorizer: slowAuthorizer(authorizerTakesMs) });
    const proxy = await startCuttingProxy(service.grpcPort);
    const cutClient = createStockClient(Number(proxy.address.split(':')[1]));
    const firstCodes = new Set<number>();
    try {
      for (let round = 0; round < rounds; round += 1) {
        // A connection that was cut is made anew only after a while: nothing is sent before the first call gets through.
        await callUntilAnswered(cutClient, { method: 'GetPayment', request: { payment_id: randomUUID() } });
        const pay = createPayment(`order-${round}`);
        const first = cutClient.call(pay);
        await delay(authorizerTakesMs + (round % 20) * 2);
        proxy.cut();
        const { code, bytes } = await first;
        firstCodes.add(code);
        const { answer } = await callUntilAnswered(client, pay, { everyMs: 10 });
        expect(answer.code).toBe(status.OK);
        if (code === status.OK) expect(answer.bytes).toEqual(bytes);
      }
    } finally {
      cutClient.close();
      proxy.close();
    }

    expect(firstCodes).toContain(status.UNAVAILABLE);
    expect(await database.count('payments')).toBe(rounds);
    expect(await database.count('(SELECT DISTINCT order_id FROM payments) AS orders')).toBe(rounds);
    expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(rounds);
  });
});

function createPayment(orderId: string): StockCall {
  return { method: 'CreatePayment', request: paymentRequest({ order_id: orderId }), requestId: randomUUID() };
}

async function paymentsOf(database: TestDatabase): Promise<readonly string[]> {
  const rows = await database.rows<{ payment_id: string }>('SELECT payment_id FROM payments');
  return rows.map((row) => row.payment_id);
}
