import { randomUUID } from 'node:crypto';
import { credentials, type ServiceError, status } from '@grpc/grpc-js';
import type { Payment } from '../../src/gen/proto/payments/v1/payments';
import { newRequestId, readErrorDetails } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy';
import { statementsWaiting } from '../support/record-hold';
import { until } from '../support/until';
import { useService } from '../support/use-service';

/** Our client behind a proxy; another writer reaches the service directly. */
describe('our client, when its update was written and the answer was lost', () => {
  const used = useService();
  let proxy: CuttingProxy;
  let ours: PaymentsClient;
  let others: PaymentsClient;
  let sent: string[];

  beforeAll(async () => {
    proxy = await startCuttingProxy(used.service.grpcPort);
    const insecure = credentials.createInsecure();
    ours = createPaymentsClient(proxy.address, {
      credentials: insecure,
      initialBackoffMs: 1,
      onEvent: (event) => event.type === 'call' && sent.push(`${event.path.split('/')[2]} ${event.attempts > 1}`),
    });
    others = createPaymentsClient(`127.0.0.1:${used.service.grpcPort}`, { credentials: insecure });
  });

  afterAll(() => {
    ours.close();
    others.close();
    proxy.close();
  });

  /**
   * Updates with our client. The row is held until the connection was cut, so the first attempt is written and its answer
   * lost; the retry is let through when `meanwhile` is over.
   */
  const update = async (meanwhile: (written: Payment) => Promise<unknown>, requestId?: string) => {
    const order = { orderId: randomUUID(), amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa' };
    const paid = await others.createPayment({ ...order, metadata: {} }, { requestId: newRequestId() });
    const { paymentId, etag } = paid.payment as Payment;
    const keeper = await used.database.pool.connect();
    await keeper.query('BEGIN');
    await keeper.query('SELECT FROM payments WHERE payment_id = $1 FOR UPDATE', [paymentId]);
    sent = [];
    const updated = ours.updatePayment({ paymentId, etag, metadata: { note: 'ours' } }, { requestId });
    const ended = updated.then(
      ({ payment }) => ({ payment, error: undefined }),
      (error: ServiceError) => ({ payment: undefined, error }),
    );
    await statementsWaiting(used.database, 1);
    proxy.hold();
    proxy.cut();
    await keeper.query('ROLLBACK');
    keeper.release();
    const read = async () => (await others.getPayment({ paymentId })).payment as Payment;
    await until('the first attempt is written', async () => (await read()).etag !== etag);
    await meanwhile(await read());
    proxy.letThrough();
    return { ...(await ended), now: await read() };
  };

  it('says success where nobody else wrote, with what its first attempt wrote', async () => {
    const { payment, error, now } = await update(() => Promise.resolve());
    expect(error).toBeUndefined();
    expect(payment).toEqual(now);
    expect(now.metadata).toEqual({ note: 'ours' });
    expect(sent).toEqual(['UpdatePayment true', 'GetPayment false']);
  });

  it('says ETAG_MISMATCH where another writer came in between, whose write stays', async () => {
    const { error, now } = await update((written) =>
      others.updatePayment({ ...written, metadata: { note: 'theirs' } }),
    );
    expect(error?.code).toBe(status.ABORTED);
    expect(error && readErrorDetails(error.metadata)).toMatchObject({ reason: 'ETAG_MISMATCH', domain: 'payments.v1' });
    expect(now.metadata).toEqual({ note: 'theirs' });
  });

  it('says success where another writer came in between and wrote the same', async () => {
    const { payment, now } = await update((written) =>
      others.updatePayment({ ...written, metadata: { note: 'ours' } }),
    );
    expect(payment).toEqual(now);
    expect(now.metadata).toEqual({ note: 'ours' });
  });

  it('with a key, is told the answer of its first attempt, whoever wrote since, and reads nothing', async () => {
    const theirs = { note: 'theirs' };
    const { payment, now } = await update(
      (written) => others.updatePayment({ ...written, metadata: theirs }),
      newRequestId(),
    );
    expect(payment?.metadata).toEqual({ note: 'ours' });
    expect(now.metadata).toEqual(theirs);
    expect(sent).toEqual(['UpdatePayment true']);
  });
});
