import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { rawCall } from '../support/raw-call';

const PATH = '/payments.v1.PaymentsService/CreatePayment';

describe('a request under the key of another one (design 3.4)', () => {
  let service: AttemptService;
  beforeAll(async () => {
    service = await startAttemptService({ server: { clientVersions: ['shop/2.0.0'] } });
    service.handle({ createPayment: payAndComplete });
  });
  afterAll(() => service.stop());

  const pay = (requestId: string, orderId: string, userAgent: string) => {
    const bytes = CreatePaymentRequest.encode(
      CreatePaymentRequest.fromPartial({ orderId, amountMinor: 1n, currency: 'EUR', paymentMethod: 'tok_visa' }),
    ).finish();
    return rawCall(service.port, PATH, [Buffer.from(bytes)], { 'request-id': requestId, 'user-agent': userAgent });
  };

  it('is told by the version of its client, where that is one of those that are known', async () => {
    const requestId = randomUUID();
    expect((await pay(requestId, 'order-1', 'shop/2.0.0 grpc-node-js/1.14.5')).code).toBe(status.OK);
    await pay(requestId, 'order-2', 'shop/2.0.0 grpc-node-js/1.14.5');
    await pay(requestId, 'order-3', `shop/${randomUUID()}`);
    const admitted = service.events.filter((event) => event.type === 'admitted');
    expect(admitted.map(({ outcome, clientVersion }) => [outcome, clientVersion])).toEqual([
      ['claimed', undefined],
      ['mismatch', 'shop/2.0.0'],
      ['mismatch', 'other'],
    ]);
  });
});
