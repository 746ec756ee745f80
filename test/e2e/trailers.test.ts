import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CreatePaymentRequest, CreatePaymentResponse } from '../../src/gen/proto/payments/v1/payments';
import { paymentRequest } from '../support/payment-requests';
import { rawCall } from '../support/raw-call';
import { useService } from '../support/use-service';

const RETENTION_MS = 7 * 24 * 3_600_000;

describe('the marks on an answer (design 3.3)', () => {
  const used = useService();

  it('say until when a keyed answer is kept, by the database clock, the same on every attempt', async () => {
    const requestId = randomUUID();
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId };
    const first = await used.client.call(pay);
    const second = await used.client.call(pay);
    const [record] = await used.database.rows<{ created_at: Date }>(
      'SELECT created_at FROM idempotency_record WHERE request_id = $1',
      [requestId],
    );

    const [expiresAt] = first.trailers.get('idempotency-expires-at');
    expect(expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(String(expiresAt))).toBe((record?.created_at.getTime() ?? 0) + RETENTION_MS);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(second.trailers.get('idempotency-expires-at')).toEqual([expiresAt]);
  });

  it('are not on calls that take no key', async () => {
    const read = await used.client.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
    expect(read.code).toBe(status.NOT_FOUND);
    expect(read.trailers.get('idempotency-expires-at')).toEqual([]);
  });

  // Case J1.
  it('are all trailers: what comes before the answer is what gRPC itself sends', async () => {
    const request = CreatePaymentRequest.fromPartial({
      ...{ orderId: 'order-1', amountMinor: 1n, currency: 'EUR', paymentMethod: 'tok_visa' },
    });
    const bytes = CreatePaymentRequest.encode(request).finish();
    const call = () =>
      rawCall(used.service.grpcPort, '/payments.v1.PaymentsService/CreatePayment', [bytes], { 'request-id': key });
    const key = randomUUID();
    const [first, replay] = [await call(), await call()];
    // A replay is told from a first answer by its trailer alone.
    expect(replay.message).toBe(first.message);
    for (const answer of [first, replay]) {
      expect(answer.code).toBe(status.OK);
      expect(answer.endedByHeaders).toBe(false);
      expect(CreatePaymentResponse.decode(answer.response ?? Buffer.of()).payment?.orderId).toBe('order-1');
      const known = [':status', 'content-type', 'date', 'grpc-accept-encoding', 'grpc-encoding'];
      expect(Object.keys(answer.headers).filter((name) => !known.includes(name))).toEqual([]);
    }
  });
});
