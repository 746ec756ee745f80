import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { PaymentState } from '../../src/gen/proto/payments/v1/payments';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer } from '../support/stock-client';
import { useService } from '../support/use-service';

describe('the calls of a payment', () => {
  const used = useService();

  const pay = (change: Record<string, unknown> = {}, requestId: string = randomUUID()): Promise<StockAnswer> =>
    used.client.call({
      method: 'CreatePayment',
      request: paymentRequest({ order_id: `order-${requestId}`, ...change }),
      requestId,
    });
  const call = (method: string, paymentId: string): Promise<StockAnswer> =>
    used.client.call({ method, request: { payment_id: paymentId } });
  const idOf = ({ response }: StockAnswer): string => response?.payment.payment_id ?? '';

  test.each(['GetPayment', 'CancelPayment'])('%s refuses what is no id of a payment', async (method) => {
    for (const paymentId of ['', 'order-1', '\0', `${randomUUID()}0`]) {
      const answer = await call(method, paymentId);
      expect(answer.code).toBe(status.INVALID_ARGUMENT);
      expect(answer.error.violations).toMatchObject([
        { field: 'payment_id', description: 'expected the UUID of a payment' },
      ]);
    }
  });

  test.each(['GetPayment', 'CancelPayment'])('%s does not find what there is not', async (method) => {
    expect(await call(method, randomUUID())).toMatchObject({ code: status.NOT_FOUND, trailersOnly: true });
  });

  it('shows a payment as it was made, without a record of its own', async () => {
    const paid = await pay();
    const records = await used.database.count('idempotency_record');
    const shown = await call('GetPayment', idOf(paid));
    expect(shown.bytes).toEqual(paid.bytes);
    expect(await used.database.count('idempotency_record')).toBe(records);
  });

  it('cancels a payment twice with the same result', async () => {
    const paymentId = idOf(await pay());
    const first = await call('CancelPayment', paymentId);
    const second = await call('CancelPayment', paymentId);
    expect(first).toMatchObject({
      code: status.OK,
      response: { payment: { state: PaymentState.PAYMENT_STATE_CANCELLED } },
    });
    expect(second.code).toBe(status.OK);
    expect(second.bytes).toEqual(first.bytes);
  });

  it('replays a payment as it was answered, also after it was cancelled', async () => {
    const requestId = randomUUID();
    const paid = await pay({}, requestId);
    await call('CancelPayment', idOf(paid));
    const replayed = await pay({}, requestId);
    expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(replayed.bytes).toEqual(paid.bytes);
  });

  it('have the times of the database, whatever the clock of the process says', async () => {
    await used.database.rows("ALTER TABLE payments ALTER created_at SET DEFAULT '2001-01-01Z'");
    const { response } = await pay();
    await used.database.rows('ALTER TABLE payments ALTER created_at SET DEFAULT now()');
    expect(response?.payment).toMatchObject({ create_time: { seconds: String(Date.UTC(2001, 0) / 1000) } });
  });

  // Case E3: both amounts are the same number in a double.
  it('tells amounts apart that differ only beyond 53 bits', async () => {
    const requestId = randomUUID();
    const paid = await pay({ amount_minor: '9007199254740993' }, requestId);
    const other = await pay({ amount_minor: '9007199254740992' }, requestId);
    expect(paid).toMatchObject({ code: status.OK, response: { payment: { amount_minor: '9007199254740993' } } });
    expect(other).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    expect(
      await used.database.rows('SELECT amount_minor::text FROM payments WHERE request_id = $1', [requestId]),
    ).toEqual([{ amount_minor: '9007199254740993' }]);
  });

  it('takes, keeps and replays the largest amount there is', async () => {
    const requestId = randomUUID();
    const amount = { amount_minor: '9223372036854775807' };
    const paid = await pay(amount, requestId);
    const replayed = await pay(amount, requestId);
    expect(paid).toMatchObject({ code: status.OK, response: { payment: amount } });
    expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(replayed.bytes).toEqual(paid.bytes);
  });

  it('lets the clock of the client go on between two attempts', async () => {
    const requestId = randomUUID();
    const paid = await pay({ client_sent_at: { seconds: '1767225600', nanos: 1 } }, requestId);
    const later = await pay({ client_sent_at: { seconds: '1767225700', nanos: 2 } }, requestId);
    const without = await pay({}, requestId);
    expect([paid.code, later.code, without.code]).toEqual([status.OK, status.OK, status.OK]);
    expect([later.bytes, without.bytes]).toEqual([paid.bytes, paid.bytes]);
  });
});
