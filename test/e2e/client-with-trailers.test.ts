import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import {
  createPromiseClient,
  IdempotencyError,
  loadPolicies,
  newRequestId,
  withTrailers,
} from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type ForeignServer, foreignDescriptorSet, ShelfService, startForeignServer } from '../support/foreign-service';
import { metadataOf } from '../support/scripted-server';
import { useService } from '../support/use-service';

const insecure = credentials.createInsecure();

describe('a payment with its trailers', () => {
  const used = useService();
  let payments: PaymentsClient;

  beforeAll(() => {
    payments = createPaymentsClient(`127.0.0.1:${used.service.grpcPort}`, { credentials: insecure });
  });

  afterAll(() => payments.close());

  const payment = () => ({
    ...{ orderId: randomUUID(), amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} },
  });

  it('is the response that the method alone gives, and whether it was replayed, until when, how often, by which key', async () => {
    const [request, requestId] = [payment(), newRequestId()];
    const pay = withTrailers(payments.createPayment);
    const first = await pay(request, { requestId });
    const second = await pay(request, { requestId });

    expect(first).toMatchObject({ replayed: false, attempts: 1, requestId });
    expect(second).toMatchObject({ replayed: true, attempts: 1, requestId, response: first.response });
    expect(second.response).toEqual(await payments.createPayment(request, { requestId }));
    expect(second.response.payment?.orderId).toBe(request.orderId);
    expect(second.expiresAt).toEqual(first.expiresAt);
    expect(second.expiresAt?.getTime()).toBeGreaterThan(Date.now());
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
  });

  it('rejects where the method rejects, with an error that has all of it', async () => {
    const request = payment();
    await payments.createPayment(request, { requestId: newRequestId() });
    const requestId = newRequestId();
    const refusal = () => withTrailers(payments.createPayment)(request, { requestId }).catch((error: unknown) => error);
    expect(await refusal()).toMatchObject({ code: status.ALREADY_EXISTS, replayed: false, attempts: 1, requestId });
    const again = await refusal();
    expect(again).toBeInstanceOf(IdempotencyError);
    expect(again).toMatchObject({ code: status.ALREADY_EXISTS, replayed: true, expiresAt: expect.any(Date) as Date });
  });

  it('is there of methods that the payments client adds to, and of those without a key', async () => {
    const { payment: paid } = await payments.createPayment(payment(), { requestId: newRequestId() });
    if (paid === undefined) throw new Error('expected a payment');
    const updated = await withTrailers(payments.updatePayment)({ ...paid, metadata: { note: 'new' } });
    expect(updated).toMatchObject({ replayed: false, expiresAt: undefined, requestId: undefined, attempts: 1 });
    expect(updated.response.payment?.metadata).toEqual({ note: 'new' });
  });
});

describe('an answer of a foreign service with its trailers', () => {
  const book = { title: 'Kürk Mantolu Madonna', copies: 1n };
  let server: ForeignServer;
  let failures = 0;

  beforeAll(async () => {
    server = await startForeignServer((_, answer) => {
      failures -= 1;
      if (failures >= 0) answer({ code: status.UNAVAILABLE, details: 'down' });
      else answer(null, { shelf: 7 }, metadataOf({ 'shelf-age': '3' }));
    });
  });

  afterAll(() => server.close());

  it('has the trailers of the service, the attempts, and the key wherever it was given', async () => {
    const policies = loadPolicies(foreignDescriptorSet());
    const shelf = createPromiseClient(ShelfService, server.address, {
      ...{ credentials: insecure, policies, initialBackoffMs: 1 },
    });
    failures = 2;
    const requestId = newRequestId();
    const told: number[] = [];
    const put = withTrailers(shelf.putBook);
    const answer = await put(book, {
      ...{ metadata: metadataOf({ 'request-id': requestId }), onEnd: ({ attempts }) => told.push(attempts) },
    });
    shelf.close();
    expect(answer).toMatchObject({ response: { shelf: 7 }, attempts: 3, requestId, replayed: false });
    expect(answer.trailers.get('shelf-age')).toEqual(['3']);
    // The caller's own onEnd is told all the same.
    expect(told).toEqual([3]);
  });
});

test('what is no method of a promise client is refused', async () => {
  const method = withTrailers(async (request: string) => request);
  await expect(method('hello')).rejects.toThrow('withTrailers: expected a method that calls onEnd');
});
