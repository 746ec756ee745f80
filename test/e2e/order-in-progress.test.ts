import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import { serviceConfigOf } from '../../src/cli/service-config';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { IdempotencyError, loadPolicies, newRequestId, readErrorDetails } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';
import { useService } from '../support/use-service';

/** What a caller of either client was told. */
interface Told {
  readonly code: status;
  readonly reason: string | undefined;
  /** Of the payment that was made, or of the one that lives. */
  readonly paymentId: string | undefined;
}

describe('two payments of one order under two keys, the first of which is still asking the card network (design 3.2)', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  let payments: PaymentsClient;
  let stock: StockClient;
  let asked = 0;

  beforeAll(() => {
    payments = createPaymentsClient(`127.0.0.1:${used.service.grpcPort}`, {
      credentials: credentials.createInsecure(),
    });
    const own = loadPolicies(descriptorSet).all();
    const config = serviceConfigOf(own.filter(({ service }) => service === 'payments.v1.PaymentsService'));
    stock = createStockClient(used.service.grpcPort, { 'grpc.service_config': JSON.stringify(config) });
  });

  afterAll(() => {
    payments.close();
    stock.close();
  });

  const byOurs = async (orderId: string): Promise<Told> => {
    const request = { orderId, amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
    try {
      const { payment } = await payments.createPayment(request, { requestId: newRequestId() });
      return { code: status.OK, reason: undefined, paymentId: payment?.paymentId };
    } catch (error) {
      if (!(error instanceof IdempotencyError)) throw error;
      const { reason, metadata } = readErrorDetails(error.metadata);
      return { code: error.code, reason, paymentId: metadata.get('payment_id') };
    }
  };
  const byStock = async (orderId: string): Promise<Told> => {
    const request = { order_id: orderId, amount_minor: '1250', currency: 'EUR', payment_method: 'tok_visa' };
    const answer = await stock.call({ method: 'CreatePayment', request, requestId: randomUUID() });
    const paymentId = answer.response?.payment.payment_id ?? answer.error.metadata.get('payment_id');
    return { code: answer.code, reason: answer.error.reason, paymentId };
  };

  const refusals = (): number =>
    used.service.lines.filter(({ reason }) => reason === 'ORDER_PAYMENT_IN_PROGRESS').length;

  it.each([
    ['our client', byOurs],
    ['a stock client with the service config that is printed', byStock],
  ])('end as one payment and one ALREADY_EXISTS that names it: %s comes again by itself', async (_, pay) => {
    const [orderId, time] = [randomUUID(), ++asked];
    const first = pay(orderId);
    await gate.asked(time);
    const before = refusals();
    const second = pay(orderId);
    await until('the second was refused', () => Promise.resolve(refusals() > before));
    gate.answer(time);

    const paid = await first;
    expect(paid.code).toBe(status.OK);
    expect(await second).toEqual({
      ...{ code: status.ALREADY_EXISTS, reason: 'ORDER_ALREADY_PAID', paymentId: paid.paymentId },
    });
    expect(refusals()).toBe(before + 1);
    expect(await used.database.count(`payments WHERE order_id = '${orderId}'`)).toBe(1);
    expect(gate.timesAsked()).toBe(time);
  });

  it('tells the second when to come again, in both ways, and nothing before its status', async () => {
    const [orderId, time] = [randomUUID(), ++asked];
    const first = byOurs(orderId);
    await gate.asked(time);
    const request = { order_id: orderId, amount_minor: '1250', currency: 'EUR', payment_method: 'tok_visa' };
    const second = await used.client.call({ method: 'CreatePayment', request, requestId: randomUUID() });
    gate.answer(time);
    await first;

    const error = { reason: 'ORDER_PAYMENT_IN_PROGRESS', domain: 'payments.v1', retryDelayMs: 1_000 };
    expect(second).toMatchObject({ code: status.ABORTED, trailersOnly: true, error });
    expect(second.trailers.get('grpc-retry-pushback-ms')).toEqual(['1000']);
  });
});
