import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type Answered, callUntilAnswered } from '../support/call-until-answered';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres';
import { processMetric } from '../support/process-metric';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockCall, type StockClient } from '../support/stock-client';
import { until } from '../support/until';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

/** Short, since a crash leaves claims behind that nobody gives back. */
const LEASE_MS = 2_000;
const CALLERS = 8;
const PAYMENTS_BEFORE_AND_AFTER = 24;

/** What a caller may be told while the database goes and comes, and nothing else. */
const COME_AGAIN: ReadonlySet<string | undefined> = new Set(['STORE_UNAVAILABLE', 'REQUEST_IN_PROGRESS', 'CLAIM_LOST']);

describe('a service under load whose database goes away, time and again', () => {
  let database: OwnPostgres;
  let service: ServiceProcess;
  let client: StockClient;

  beforeAll(async () => {
    database = await startOwnPostgres();
    service = await startServiceProcess({
      connectionString: database.connectionString,
      descriptorSet: Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString('base64'),
    });
    client = createStockClient(service.grpcPort);
  });

  afterEach(async () => {
    await database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(async () => {
    client.close();
    service.kill('SIGKILL');
    await service.exited;
    await database.drop();
  });

  it.each(['fast', 'immediate'] as const)(
    'by a stop that is %s: calls are UNAVAILABLE and run nothing until it is back, then every key is paid once',
    async (mode) => {
      const load = startLoad(client);
      await load.answeredAtLeast(PAYMENTS_BEFORE_AND_AFTER);
      await database.stopServer(mode);

      expect((await client.call(createPayment())).code).toBe(status.UNAVAILABLE);
      const askedBefore = service.timesAsked();
      const unavailable = () => processMetric(service, 'idempotency_requests_total', 'outcome="store_unavailable"');
      const unavailableBefore = await unavailable();
      const whileAway = Array.from({ length: 10 }, createPayment);
      for (const answer of await Promise.all(whileAway.map((pay) => client.call(pay)))) {
        expect(answer).toMatchObject({ code: status.UNAVAILABLE, trailersOnly: true });
        expect(answer.error).toMatchObject({ reason: 'STORE_UNAVAILABLE', domain: 'idempotency.v1' });
        expect(answer.error.retryDelayMs).toBeGreaterThan(0);
      }
      expect(service.timesAsked()).toBe(askedBefore);
      // The metrics tell while the database is still away (case B4).
      expect(await unavailable()).toBeGreaterThanOrEqual(unavailableBefore + whileAway.length);
      await database.startServer();

      const retried = await Promise.all(whileAway.map((pay) => callUntilAnswered(client, pay)));
      await load.answeredAtLeast(load.answeredSoFar() + PAYMENTS_BEFORE_AND_AFTER);
      await expectOnePaymentEach([...(await load.end()), ...retried]);
    },
  );

  it('by a cut of every connection: every key is paid once', async () => {
    const load = startLoad(client);
    for (let cut = 1; cut <= 3; cut += 1) {
      await load.answeredAtLeast(cut * PAYMENTS_BEFORE_AND_AFTER);
      await database.rows(`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name LIKE 'grpc-idempotency %' AND datname = current_database()`);
    }
    await load.answeredAtLeast(load.answeredSoFar() + PAYMENTS_BEFORE_AND_AFTER);
    await expectOnePaymentEach(await load.end());
  });

  async function expectOnePaymentEach(answered: readonly Answered[]): Promise<void> {
    for (const { answer, refusals } of answered) {
      expect({ code: answer.code, details: answer.details }).toMatchObject({ code: status.OK });
      for (const { error, details } of refusals) {
        expect({ details, known: COME_AGAIN.has(error.reason) }).toEqual({ details, known: true });
      }
    }
    expect(service.process.exitCode).toBeNull();
    expect(await database.count('payments')).toBe(answered.length);
    expect(await database.count('(SELECT DISTINCT order_id FROM payments) AS orders')).toBe(answered.length);
    expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(answered.length);
  }
});

/** Callers that pay one order after the other, each with one key until it is answered. */
function startLoad(client: StockClient) {
  const answered: Answered[] = [];
  let ending = false;
  const caller = async (): Promise<void> => {
    while (!ending) answered.push(await callUntilAnswered(client, createPayment(), { everyMs: 100 }));
  };
  const callers = Array.from({ length: CALLERS }, caller);
  return {
    answeredSoFar: () => answered.length,
    answeredAtLeast: (count: number) =>
      until(`${count} calls are answered`, () => Promise.resolve(answered.length >= count)),
    end: async (): Promise<readonly Answered[]> => {
      ending = true;
      await Promise.all(callers);
      return answered;
    },
  };
}

function createPayment(): StockCall {
  const requestId = randomUUID();
  return { method: 'CreatePayment', request: paymentRequest({ order_id: `order-${requestId}` }), requestId };
}
