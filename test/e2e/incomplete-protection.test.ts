import { randomUUID } from 'node:crypto';
import { Server, status } from '@grpc/grpc-js';
import { CreatePaymentRequest, PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { rawCall } from '../support/raw-call';

const CREATE_PAYMENT = '/payments.v1.PaymentsService/CreatePayment';

describe('a server that was put together without one half of the protection', () => {
  let service: AttemptService | undefined;
  let handled = 0;

  afterEach(async () => {
    await service?.stop();
    service = undefined;
  });

  it('runs no handler when the interceptor is missing, and says so', async () => {
    handled = 0;
    service = await startAttemptService({
      assemble: (idempotency, handlers) => {
        const server = new Server();
        idempotency.addService(server, PaymentsServiceService, handlers);
        return server;
      },
    });
    service.handle({ createPayment: (request, attempt) => ((handled += 1), payAndComplete(request, attempt)) });

    expect(await service.pay()).toMatchObject({ code: status.INTERNAL, details: 'internal error' });

    expect(handled).toBe(0);
    expect(service.events).toEqual([
      expect.objectContaining({
        ...{ type: 'fault', path: CREATE_PAYMENT },
        what: 'the server lacks the interceptor: new Server({ interceptors: [idempotency.interceptor] })',
      }),
    ]);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('runs no handler when the service was added past the library, and says so', async () => {
    handled = 0;
    service = await startAttemptService({
      assemble: (idempotency) => {
        const server = new Server({ interceptors: [idempotency.interceptor] });
        server.addService(
          { createPayment: PaymentsServiceService.createPayment },
          {
            createPayment: (_: unknown, callback: (error: null, response: object) => void) => {
              handled += 1;
              callback(null, { payment: undefined });
            },
          },
        );
        return server;
      },
    });

    expect(await service.pay()).toMatchObject({ code: status.INTERNAL, details: 'internal error' });

    expect(handled).toBe(0);
    expect(service.events).toContainEqual(
      expect.objectContaining({
        type: 'fault',
        what: 'the service was not registered by idempotency.addService(server, definition, handlers)',
      }),
    );
    expect(await service.database.count('idempotency_record')).toBe(0);
  });
});

describe('a call that is not one message', () => {
  let service: AttemptService;
  let handled = 0;

  beforeAll(async () => {
    service = await startAttemptService();
    service.handle({ createPayment: (request, attempt) => ((handled += 1), payAndComplete(request, attempt)) });
  });

  beforeEach(() => {
    handled = 0;
  });

  afterAll(() => service.stop());

  const message = CreatePaymentRequest.encode(
    CreatePaymentRequest.fromPartial({ orderId: 'order-1', amountMinor: 1n, currency: 'EUR', paymentMethod: 'tok' }),
  ).finish();

  it('runs when it is one, sent by hand', async () => {
    const answer = await rawCall(service.port, CREATE_PAYMENT, [message], { 'request-id': randomUUID() });

    expect(answer).toMatchObject({ code: status.OK });
    expect(handled).toBe(1);
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  it.each([
    ['none', []],
    ['two', [message, message]],
    ['three', [message, message, message]],
  ])('but %s is UNIMPLEMENTED; nothing is claimed and nothing runs', async (_, messages) => {
    const answer = await rawCall(service.port, CREATE_PAYMENT, messages, { 'request-id': randomUUID() });

    expect(answer.code).toBe(status.UNIMPLEMENTED);
    expect(handled).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
    expect(await service.database.count('payments')).toBe(0);
  });
});
