import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { paymentRequest } from '../support/payment-requests';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';
import { useService } from '../support/use-service';

const SERVICE_CONFIG = {
  methodConfig: [
    {
      name: [{ service: 'payments.v1.PaymentsService' }],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: '0.01s',
        maxBackoff: '0.01s',
        backoffMultiplier: 1,
        retryableStatusCodes: ['ABORTED', 'UNAVAILABLE', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION'],
      },
    },
  ],
};

// Case J1: such a client gives up its retries as soon as anything comes before the status.
describe('a stock client with a retry policy of its own', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  let retrying: StockClient;

  beforeAll(() => {
    retrying = createStockClient(used.service.grpcPort, { 'grpc.service_config': JSON.stringify(SERVICE_CONFIG) });
  });
  afterAll(() => retrying.close());

  const calls = (outcome: string) => used.service.lines.filter((line) => line['outcome'] === outcome);

  it('comes again as late as it is told while the first attempt runs, and ends with its answer', async () => {
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
    const first = used.client.call(pay);
    await gate.asked(1);
    const second = retrying.call(pay);
    await until('two retries were told to wait', async () => calls('in_progress').length === 2);
    gate.answer(1);

    const [paid, replayed] = await Promise.all([first, second]);
    expect([paid.code, replayed.code]).toEqual([status.OK, status.OK]);
    expect(replayed.bytes).toEqual(paid.bytes);
    expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await used.database.count('payments')).toBe(1);
    expect(gate.timesAsked()).toBe(1);
    const [one = NaN, two = NaN] = calls('in_progress').map(({ time }) => Date.parse(String(time)));
    // By its own policy it would have waited 10 ms.
    expect(two - one).toBeGreaterThanOrEqual(450);
  });

  test.each<[string, string, string | undefined]>([
    ['without a key', 'missing_key', undefined],
    ['with a key that is none', 'malformed_key', 'order-1'],
  ])('sends a call %s once, although its policy would send it again', async (_, outcome, requestId) => {
    const answer = await retrying.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
    expect(answer.code).toBe(status.INVALID_ARGUMENT);
    expect(calls(outcome)).toHaveLength(1);
  });

  it('sends other content under a used key once', async () => {
    const requestId = randomUUID();
    gate.answer(2);
    await retrying.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
    const other = paymentRequest({ order_id: 'order-2' });
    const answer = await retrying.call({ method: 'CreatePayment', request: other, requestId });
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    expect(calls('mismatch')).toHaveLength(1);
  });
});
