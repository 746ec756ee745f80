import { randomUUID } from 'node:crypto';
import { credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { Payment } from '../../src/gen/proto/payments/v1/payments';
import { newRequestId, readErrorDetails } from '../../src/idempotency/index';
import { createOutbox } from '../../src/outbox/outbox';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { updatePaymentIfUnchanged } from '../../src/payments/payment-repository';
import { createPaymentsService } from '../../src/payments/payments-service';
import { type AttemptService, startAttemptService } from '../support/attempt-service';
import { createStockClient } from '../support/stock-client';

/** What nobody should set for UpdatePayment, and some do for all of a service. */
const RETRIES_ABORTED = {
  methodConfig: [
    {
      name: [{ service: 'payments.v1.PaymentsService' }],
      retryPolicy: {
        ...{ maxAttempts: 4, initialBackoff: '0.01s', maxBackoff: '0.01s', backoffMultiplier: 1 },
        retryableStatusCodes: ['UNAVAILABLE', 'ABORTED'],
      },
    },
  ],
};

describe('UpdatePayment', () => {
  let service: AttemptService;
  let payments: PaymentsClient;
  /** Attempts that our client sent, by the end of each call. */
  let attempts: number[];

  beforeAll(async () => {
    service = await startAttemptService({
      principal: ({ metadata }) => metadata.get('account')[0]?.toString() ?? 'account-1',
    });
    service.handle(
      createPaymentsService({
        prisma: service.connections.business,
        authorizer: createStandInAuthorizer(),
        outbox: createOutbox(),
        onPaymentCreated: () => undefined,
      }),
    );
    payments = createPaymentsClient(`127.0.0.1:${service.port}`, {
      credentials: credentials.createInsecure(),
      onEvent: (event) => event.type === 'call' && attempts.push(event.attempts),
    });
  });

  beforeEach(() => {
    attempts = [];
  });

  afterAll(async () => {
    payments.close();
    await service.stop();
  });

  const pay = async (): Promise<Payment> => {
    const payment = { orderId: randomUUID(), amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa' };
    const paid = await payments.createPayment(
      { ...payment, metadata: { note: 'as paid' } },
      { requestId: newRequestId() },
    );
    attempts = [];
    return paid.payment as Payment;
  };

  const failureOf = (call: Promise<unknown>): Promise<ServiceError> =>
    call.then(
      () => Promise.reject(new Error('expected a failure')),
      (error: ServiceError) => error,
    );

  /** The payment as it is stored. */
  const stored = async ({ paymentId }: Payment) => {
    const [row] = await service.database.rows<{ metadata: object; etag: string; updated: string }>(
      `SELECT metadata, etag::text, updated_at::text AS updated FROM payments WHERE payment_id = $1`,
      [paymentId],
    );
    return row;
  };

  it('replaces the metadata, gives a new etag, and moves the time of the last change by the database clock', async () => {
    const paid = await pay();
    const { payment } = await payments.updatePayment({ ...paid, metadata: { basket: '7', note: '' } });

    expect(payment).toMatchObject({
      ...paid,
      metadata: { basket: '7', note: '' },
      etag: payment?.etag,
      updateTime: {},
    });
    expect(payment?.etag).not.toBe(paid.etag);
    expect(await stored(paid)).toMatchObject({ metadata: { basket: '7', note: '' }, etag: payment?.etag });
    expect(
      await service.database.rows(
        'SELECT updated_at > created_at AND updated_at <= now() AS later FROM payments WHERE payment_id = $1',
        [paid.paymentId],
      ),
    ).toEqual([{ later: true }]);
    expect((await payments.getPayment(paid)).payment).toEqual(payment);
  });

  it('refuses an etag that is not the last one, writes nothing, and our client does not send it again', async () => {
    const paid = await pay();
    await payments.updatePayment({ ...paid, metadata: { note: 'newer' } });
    const before = await stored(paid);
    attempts = [];
    for (const requestId of [undefined, newRequestId()]) {
      const late = await failureOf(payments.updatePayment({ ...paid, metadata: { note: 'late' } }, { requestId }));
      expect(late.code).toBe(status.ABORTED);
      expect(readErrorDetails(late.metadata)).toMatchObject({ reason: 'ETAG_MISMATCH', domain: 'payments.v1' });
    }
    expect(attempts).toEqual([1, 1]);
    expect(await stored(paid)).toEqual(before);
  });

  it('tells a client whose policy retries ABORTED not to send it again: it arrives once', async () => {
    const paid = await pay();
    await payments.updatePayment({ ...paid, metadata: { note: 'newer' } });
    const client = createStockClient(service.port, { 'grpc.service_config': JSON.stringify(RETRIES_ABORTED) });
    const request = { payment_id: paid.paymentId, etag: paid.etag, metadata: { note: 'late' } };
    for (const requestId of [undefined, newRequestId()]) {
      const admitted = () => service.events.filter(({ type }) => type === 'admitted').length;
      const before = admitted();
      const late = await client.call({ method: 'UpdatePayment', request, requestId });
      expect(late).toMatchObject({ code: status.ABORTED, trailersOnly: true, error: { reason: 'ETAG_MISMATCH' } });
      expect(late.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
      expect(admitted() - before).toBe(1);
    }
    client.close();
  });

  it('never doubts the first attempt: it says mismatch also where the payment holds what was to be written', async () => {
    const paid = await pay();
    await payments.updatePayment({ ...paid, metadata: { note: 'same' } });
    const late = await failureOf(payments.updatePayment({ ...paid, metadata: { note: 'same' } }));
    expect(readErrorDetails(late.metadata)).toMatchObject({ reason: 'ETAG_MISMATCH' });
  });

  it('lets one of two writers with the same etag through', async () => {
    const paid = await pay();
    const notes = ['one', 'other'];
    const updates = notes.map((note) => payments.updatePayment({ ...paid, metadata: { note } }));
    const ended = await Promise.allSettled(updates);
    const written = notes.filter((_, position) => ended[position]?.status === 'fulfilled');
    expect(written).toHaveLength(1);
    expect(await stored(paid)).toMatchObject({ metadata: { note: written[0] } });
  });

  it('with a key, replays a write that happened, although its etag is no longer the last one', async () => {
    const paid = await pay();
    const requestId = newRequestId();
    const replayed: boolean[] = [];
    const update = () =>
      payments.updatePayment(
        { ...paid, metadata: { note: 'keyed' } },
        { requestId, onEnd: (end) => replayed.push(end.replayed) },
      );
    const first = await update();
    await payments.updatePayment({ ...(first.payment as Payment), metadata: { note: 'newer' } });
    const second = await update();

    expect(replayed).toEqual([false, true]);
    expect(second).toEqual(first);
    expect(await stored(paid)).toMatchObject({ metadata: { note: 'newer' } });
  });

  it('with a key, records no mismatch: the same key may be used with the right etag', async () => {
    const paid = await pay();
    const requestId = newRequestId();
    await failureOf(payments.updatePayment({ ...paid, etag: randomUUID() }, { requestId }));
    const { payment } = await payments.updatePayment({ ...paid, metadata: { note: 'right' } }, { requestId });
    expect(await stored(paid)).toMatchObject({ metadata: { note: 'right' }, etag: payment?.etag });
  });

  it('without a key, keeps no record', async () => {
    const paid = await pay();
    const records = await service.database.count('idempotency_record');
    await payments.updatePayment(paid);
    expect(await service.database.count('idempotency_record')).toBe(records);
  });

  it('does not find a payment of somebody else, nor one that never was', async () => {
    const paid = await pay();
    const metadata = new Metadata();
    metadata.set('account', 'account-2');
    const foreign = await failureOf(payments.updatePayment({ ...paid, metadata: {} }, { metadata }));
    const unknown = await failureOf(payments.updatePayment({ ...paid, paymentId: randomUUID() }));
    expect([foreign.code, unknown.code]).toEqual([status.NOT_FOUND, status.NOT_FOUND]);
    expect(foreign.details).toBe(unknown.details);
    expect(await stored(paid)).toMatchObject({ etag: paid.etag });

    // The statement itself reaches nobody else's row either.
    const change = { paymentId: paid.paymentId, etag: paid.etag, metadata: {}, scope: 'account-2' };
    expect(await updatePaymentIfUnchanged(service.connections.business, change)).toBe(false);
    expect(await stored(paid)).toMatchObject({ etag: paid.etag });
  });

  test.each<[string, Partial<Payment>]>([
    ['payment_id', { paymentId: 'payment-1' }],
    ['etag', { etag: '' }],
    ['etag', { etag: 'W/"1"' }],
    ['metadata', { metadata: { '': 'no name' } }],
    ['metadata', { metadata: { note: 'x'.repeat(1_025) } }],
    ['metadata', { metadata: { note: '\0' } }],
    ['metadata', { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`note ${at}`, ''])) }],
  ])('names %s where it is wrong', async (field, change) => {
    const refused = await failureOf(payments.updatePayment({ ...(await pay()), ...change }));
    expect(refused.code).toBe(status.INVALID_ARGUMENT);
    expect(readErrorDetails(refused.metadata).violations.map((violation) => violation.field)).toEqual([field]);
  });
});
