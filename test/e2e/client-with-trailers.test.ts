import { status } from '@grpc/grpc-js';
import { IdempotencyError, newRequestId, withTrailers } from '../../src/idempotency/index';
import { newPayment } from '../support/new-payment';
import { metadataOf } from '../support/scripted-server';
import { usePaymentsClient } from '../support/use-payments-client';
import { BOOK, useShelf } from '../support/use-shelf';

describe('a payment with its trailers', () => {
  const used = usePaymentsClient();

  it('is the response that the method alone gives, and whether it was replayed, until when, how often, by which key', async () => {
    const [request, requestId] = [newPayment(), newRequestId()];
    const pay = withTrailers(used.payments.createPayment);
    const first = await pay(request, { requestId });
    const second = await pay(request, { requestId });

    expect(first).toMatchObject({ replayed: false, attempts: 1, requestId });
    expect(second).toMatchObject({ replayed: true, attempts: 1, requestId, response: first.response });
    expect(second.response).toEqual(await used.payments.createPayment(request, { requestId }));
    expect(second.response.payment?.orderId).toBe(request.orderId);
    expect(second.expiresAt).toEqual(first.expiresAt);
    expect(second.expiresAt?.getTime()).toBeGreaterThan(Date.now());
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
  });

  it('rejects where the method rejects, with an error that has all of it', async () => {
    const request = newPayment();
    await used.payments.createPayment(request, { requestId: newRequestId() });
    const requestId = newRequestId();
    const refusal = () =>
      withTrailers(used.payments.createPayment)(request, { requestId }).catch((error: unknown) => error);
    expect(await refusal()).toMatchObject({ code: status.ALREADY_EXISTS, replayed: false, attempts: 1, requestId });
    const again = await refusal();
    expect(again).toBeInstanceOf(IdempotencyError);
    expect(again).toMatchObject({ code: status.ALREADY_EXISTS, replayed: true, expiresAt: expect.any(Date) as Date });
  });

  it('is there of methods that the payments client adds to, and of those without a key', async () => {
    const { payment: paid } = await used.payments.createPayment(newPayment(), { requestId: newRequestId() });
    if (paid === undefined) throw new Error('expected a payment');
    const updated = await withTrailers(used.payments.updatePayment)({ ...paid, metadata: { note: 'new' } });
    expect(updated).toMatchObject({ replayed: false, expiresAt: undefined, requestId: undefined, attempts: 1 });
    expect(updated.response.payment?.metadata).toEqual({ note: 'new' });
  });
});

describe('an answer of a foreign service with its trailers', () => {
  const used = useShelf();

  it('has the trailers of the service, the attempts, and the key wherever it was given', async () => {
    const shelf = used.connect();
    used.failures = 2;
    used.trailers = metadataOf({ 'shelf-age': '3' });
    const requestId = newRequestId();
    const told: number[] = [];
    const put = withTrailers(shelf.putBook);
    const answer = await put(BOOK, {
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
