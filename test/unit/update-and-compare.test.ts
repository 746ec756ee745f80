import { Metadata, status } from '@grpc/grpc-js';
import { Payment, type UpdatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { type CallEnd, type CallSettings, StatusError } from '../../src/idempotency/index';
import { statusErrorStatus } from '../../src/idempotency/wire/error-details';
import { updateAndCompare, type UpdateOptions } from '../../src/payments/update-and-compare';

const REQUEST: UpdatePaymentRequest = { paymentId: 'payment-1', etag: 'etag-1', metadata: { a: '1', b: '2' } };
const NEWER = Payment.create({ paymentId: 'payment-1', etag: 'etag-2', metadata: { b: '2', a: '1' } });

/** An error as a client gets it. */
function failure(reason: string, domain = 'payments.v1') {
  const error = statusErrorStatus(new StatusError(status.ABORTED, 'changed', [], { reason, domain }));
  return Object.assign(new Error('10 ABORTED: changed'), error);
}

/** A client whose update fails after so many attempts, and whose read finds a payment or fails. */
function clientOf(found: Payment | Error | undefined, { attempts = 2, error = failure('ETAG_MISMATCH') } = {}) {
  const read = jest.fn<void, [CallSettings | undefined]>();
  const options: UpdateOptions = {
    timeoutMs: 10_000,
    readTimeoutMs: 8_000,
    requestIdName: 'request-id',
    client: {
      updatePayment: (_, settings) => {
        settings?.onEnd?.({
          ...{ replayed: false, expiresAt: undefined, attempts, requestId: undefined, trailers: error.metadata },
        });
        return Promise.reject(error);
      },
      getPayment: (_, settings) => {
        read(settings);
        return found instanceof Error ? Promise.reject(found) : Promise.resolve({ payment: found });
      },
    },
  };
  return { options, error, read };
}

describe('an update whose retry finds that the payment was changed', () => {
  it('is a success where the payment holds what was to be written, in any order', async () => {
    const { options } = clientOf(NEWER);
    expect(await updateAndCompare(options, REQUEST)).toEqual({ payment: NEWER });
  });

  test.each<[string, Payment | undefined]>([
    ['a value less', { ...NEWER, metadata: { a: '1' } }],
    ['a value more', { ...NEWER, metadata: { a: '1', b: '2', c: '3' } }],
    ['another value', { ...NEWER, metadata: { a: '1', b: '3' } }],
    ['another name', { ...NEWER, metadata: { a: '1', c: '2' } }],
    ['what was to be written before it was: the read lags behind', { ...NEWER, etag: REQUEST.etag }],
    ['nothing', undefined],
  ])('stays the error it is where the payment holds %s', async (_, found) => {
    const { options, error } = clientOf(found);
    await expect(updateAndCompare(options, REQUEST)).rejects.toBe(error);
  });

  it('stays the error it is where the payment can’t be read, and says why it was not compared', async () => {
    const cause = new Error('14 UNAVAILABLE');
    const { options, error } = clientOf(cause);
    await expect(updateAndCompare(options, REQUEST)).rejects.toBe(error);
    expect(error.cause).toBe(cause);
  });

  it('compares with what was asked for at first, whatever the caller does to the request meanwhile', async () => {
    const { options } = clientOf(NEWER);
    const request = { ...REQUEST, metadata: { ...REQUEST.metadata } };
    const updated = updateAndCompare(options, request);
    request.metadata['a'] = '9';
    expect(await updated).toEqual({ payment: NEWER });
  });

  it('reads with the metadata and the signal of the call, in the time that is left', async () => {
    const { options, read } = clientOf(NEWER);
    const { signal } = new AbortController();
    const metadata = new Metadata();
    metadata.set('authorization', 'Bearer token');
    await updateAndCompare(options, REQUEST, { metadata, signal, timeoutMs: 500 });
    const settings = read.mock.calls[0]?.[0];
    expect(settings).toMatchObject({ metadata, signal });
    expect(settings?.timeoutMs).toBeGreaterThan(0);
    expect(settings?.timeoutMs).toBeLessThanOrEqual(500);
  });

  it('is not read any more when no time is left', async () => {
    const { options, error, read } = clientOf(NEWER);
    await expect(updateAndCompare(options, REQUEST, { timeoutMs: 0 })).rejects.toBe(error);
    expect(read).not.toHaveBeenCalled();
  });

  it('tells its end to whoever listens', async () => {
    const { options } = clientOf(NEWER);
    const ends: CallEnd[] = [];
    await updateAndCompare(options, REQUEST, { onEnd: (end) => ends.push(end) });
    expect(ends).toMatchObject([{ attempts: 2 }]);
  });
});

describe('nothing is compared', () => {
  const keyed = new Metadata();
  keyed.set('request-id', '0b0d1a5e-52a8-4f4e-8b6c-0a3c5e7d9f10');

  test.each<[string, Parameters<typeof clientOf>[1], CallSettings]>([
    ['when the first attempt says so', { attempts: 1 }, {}],
    ['when the call has a key', {}, { requestId: '0b0d1a5e-52a8-4f4e-8b6c-0a3c5e7d9f10' }],
    ['when the call has a key in its metadata', {}, { metadata: keyed }],
    ['when the update failed for another reason', { error: failure('FROZEN') }, {}],
    ['when another service says it', { error: failure('ETAG_MISMATCH', 'orders.v1') }, {}],
  ])('%s', async (_, change, settings) => {
    const { options, error, read } = clientOf(NEWER, change);
    await expect(updateAndCompare(options, REQUEST, settings)).rejects.toBe(error);
    expect(read).not.toHaveBeenCalled();
  });

  it('when what was thrown is no status', async () => {
    const { options, read } = clientOf(NEWER);
    const broken = new TypeError('requestId: expected a key');
    const client = { ...options.client, updatePayment: () => Promise.reject(broken) };
    await expect(updateAndCompare({ ...options, client }, REQUEST)).rejects.toBe(broken);
    expect(read).not.toHaveBeenCalled();
  });
});
