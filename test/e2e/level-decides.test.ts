import { credentials, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { createPromiseClient, loadPolicies } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { startCuttingProxy } from '../support/cutting-proxy';
import { changedDescriptorSet, descriptorSetWithout } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase } from '../support/postgres';
import { fail, startScriptedServer } from '../support/scripted-server';
import { startTestService } from '../support/service';
import { useService } from '../support/use-service';

const PAYMENT = { orderId: 'order-1', amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
const PAYMENT_ID = '5f0c1a52-7d3e-4b7f-9a60-1c1d3f7f8b11';

/** Our client by the levels of one descriptor set. */
const clientOf = (address: string, set: Uint8Array) =>
  createPromiseClient(PaymentsServiceService, address, {
    credentials: credentials.createInsecure(),
    policies: loadPolicies(set),
    initialBackoffMs: 1,
  });

describe('CreatePayment with the level IDEMPOTENT, everything else unchanged', () => {
  const set = changedDescriptorSet({ CreatePayment: { level: 'IDEMPOTENT' } });
  const gate = createAuthorizerGate();
  let service: AttemptService;
  beforeAll(async () => (service = await startAttemptService({ descriptorSet: set })));

  it('runs keyless, without a record, and our client sends it again keyless', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await gate.authorizer.authorize(
          { ...request, paymentId: '' },
          { requestId: '', deadline: undefined, signal: attempt.signal },
        );
        return payAndComplete(request, attempt);
      },
    });
    const proxy = await startCuttingProxy(service.port);
    const payments = clientOf(proxy.address, set);
    const paid = payments.createPayment(PAYMENT);
    await gate.asked(1);
    proxy.cut();
    await gate.asked(2);
    gate.answer(1);
    gate.answer(2);

    expect((await paid).payment?.orderId).toBe(PAYMENT.orderId);
    payments.close();
    proxy.close();
    await service.idempotency.idle();
    expect(await service.database.count('payments')).toBe(2);
    expect(await service.database.count('idempotency_record')).toBe(0);
    await service.stop();
  });
});

describe('CreatePayment as it is', () => {
  const used = useService();

  it('is refused keyless', async () => {
    const answer = await used.client.call({ method: 'CreatePayment', request: paymentRequest() });
    expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT, error: { reason: 'REQUEST_ID_MISSING' } });
    expect(await used.database.count('payments')).toBe(0);
  });
});

describe('GetPayment without a level, everything else unchanged', () => {
  const set = changedDescriptorSet({ GetPayment: { level: 'IDEMPOTENCY_UNKNOWN' } });
  const used = useService({ descriptorSet: set });

  it('is refused keyless by the server', async () => {
    const answer = await used.client.call({ method: 'GetPayment', request: { payment_id: PAYMENT_ID } });
    expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT, error: { reason: 'REQUEST_ID_MISSING' } });
  });

  test.each([
    ['not sent again', set, 1, /^retry refused: no request-id\./],
    ['sent again where it has its level', descriptorSet, 3, /gave up after 3 attempts/],
  ])('is %s by our client', async (_, clientSet, arrivals, details) => {
    const server = await startScriptedServer(fail(status.UNAVAILABLE, 'down'));
    const payments = createPromiseClient(PaymentsServiceService, server.address, {
      credentials: credentials.createInsecure(),
      ...{ policies: loadPolicies(clientSet), initialBackoffMs: 1, maxAttempts: 3 },
    });
    const asked = payments.getPayment({ paymentId: PAYMENT_ID });
    await expect(asked).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringMatching(details) as unknown,
    });
    expect(server.arrivals).toHaveLength(arrivals);
    payments.close();
    server.close();
  });
});

test('a registry without a method that is served keeps the service from starting, and the error names it', async () => {
  const database = await createTestDatabase();
  const starting = startTestService({
    connectionString: database.connectionString,
    descriptorSet: descriptorSetWithout('GetPayment'),
  });
  await expect(starting).rejects.toThrow('/payments.v1.PaymentsService/GetPayment');
  await database.drop();
});
