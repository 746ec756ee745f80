import { type ChannelCredentials, credentials, Metadata, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { type CreatePaymentRequest, PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { createPromiseClient } from '../../src/idempotency/client/typed-client';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import { newRequestId } from '../../src/idempotency/request-id';
import { createPaymentsClient } from '../../src/payments/payments-client';
import { HANGING, REQUEST, useCountingPayments } from '../support/counting-payments';
import { failureOf } from '../support/failure-of';
import { metadataOf } from '../support/scripted-server';

const used = useCountingPayments();

test('a keyed call is retried with its key and resolves with the response', async () => {
  used.failures = 2;
  const requestId = newRequestId();
  const response = await used.client.createPayment(REQUEST, { requestId });
  // The type is the response's: a misspelt field would not compile.
  expect(response.payment).toBeUndefined();
  expect(used.created.map(({ metadata }) => metadata.get('request-id'))).toEqual([
    [requestId],
    [requestId],
    [requestId],
  ]);
  expect(used.created[0]?.request).toMatchObject({ ...REQUEST, clientSentAt: undefined });
});

test('a keyless call of an unknown level is sent once', async () => {
  used.failures = 1;
  const error = await failureOf(used.client.createPayment(REQUEST));
  expect(error.code).toBe(status.UNAVAILABLE);
  expect(error.details).toMatch(/^retry refused: no request-id/);
  expect(used.created).toHaveLength(1);
});

test('a service error comes as it is', async () => {
  const error = await failureOf(used.client.getPayment({ paymentId: 'none' }));
  expect(error).toMatchObject({ code: status.NOT_FOUND, details: 'no such payment' });
  expect(error.metadata).toBeInstanceOf(Metadata);
});

test('the metadata of a call is sent and not written to', async () => {
  const metadata = metadataOf({ tenant: 'a' });
  await used.client.createPayment(REQUEST, { requestId: newRequestId(), metadata });
  expect(used.created[0]?.metadata.get('tenant')).toEqual(['a']);
  expect(metadata.getMap()).toEqual({ tenant: 'a' });
});

describe('a key that can’t be right is refused before anything is sent', () => {
  const id = newRequestId();
  test.each([
    ['empty', '', 'requestId of /payments.v1.PaymentsService/CreatePayment: expected a key, got an empty text'],
    ['malformed', 'order-1', 'expected a UUID'],
    ['padded', ` ${id}`, 'expected a UUID'],
    ['not ASCII', 'ödeme-1', 'expected a UUID'],
    ['doubled', `${id},${id}`, 'expected one value without a comma'],
  ])('%s', async (_, requestId, expected) => {
    const error = await failureOf(used.client.createPayment(REQUEST, { requestId }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain(expected);
    expect(used.created).toHaveLength(0);
  });

  test('malformed, in the metadata', async () => {
    const metadata = metadataOf({ 'request-id': 'order-1' });
    expect(await failureOf(used.client.createPayment(REQUEST, { metadata }))).toBeInstanceOf(TypeError);
    expect(used.created).toHaveLength(0);
  });

  test('given twice', async () => {
    const metadata = metadataOf({ 'request-id': id });
    const error = await failureOf(used.client.createPayment(REQUEST, { requestId: id, metadata }));
    expect(error.message).toBe('requestId: metadata request-id is set too; expected one of them');
    expect(used.created).toHaveLength(0);
  });
});

test('a key in the metadata is as good as requestId', async () => {
  used.failures = 1;
  const metadata = metadataOf({ 'request-id': newRequestId() });
  await used.client.createPayment(REQUEST, { metadata });
  expect(used.created).toHaveLength(2);
});

describe('a request that does not fit its type is refused before anything is sent', () => {
  test.each([
    ['without a field', { ...REQUEST, metadata: undefined }],
    ['with a number for a bigint', { ...REQUEST, amountMinor: 1250 }],
  ])('%s', async (_, unfit) => {
    const onEnd = jest.fn();
    const error = await failureOf(
      used.client.createPayment(unfit as unknown as CreatePaymentRequest, { requestId: newRequestId(), onEnd }),
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(onEnd).not.toHaveBeenCalled();
    expect(error.message).toMatch(
      /^createPayment: the request could not be serialized: .+; all fields are required, 64-bit numbers are bigint$/,
    );
    expect(used.created).toHaveLength(0);
  });
});

test('credentials of another copy of grpc-js are refused, saying how to get the right ones', () => {
  const foreign = { isSecure: () => false } as unknown as ChannelCredentials;
  expect(() => createPaymentsClient(used.address, { credentials: foreign })).toThrow(
    /^credentials: expected ChannelCredentials .* import { credentials } from 'grpc-idempotency', or keep one/,
  );
});

describe('time', () => {
  test('timeoutMs ends a call', async () => {
    const error = await failureOf(used.client.createPayment(HANGING, { timeoutMs: 150, requestId: newRequestId() }));
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
  });

  test.each([0, -1, NaN, Infinity, 30_001])('timeoutMs %d is refused before anything is sent', async (timeoutMs) => {
    const error = await failureOf(used.client.createPayment(REQUEST, { timeoutMs }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/^timeoutMs: expected more than 0 and at most the client's 30000/);
    expect(used.created).toHaveLength(0);
  });
});

describe('signal', () => {
  test('aborts a running call', async () => {
    const abort = new AbortController();
    used.onCreate = () => abort.abort();
    const call = used.client.createPayment(HANGING, { signal: abort.signal, requestId: newRequestId() });
    // It was on its way: the server may go on without its caller.
    expect(await failureOf(call)).toMatchObject({ code: status.CANCELLED, why: 'cancelled', outcomeUnknown: true });
    expect(used.created).toHaveLength(1);
  });

  test('that was aborted before sends nothing', async () => {
    const call = used.client.createPayment(REQUEST, { signal: AbortSignal.abort(), requestId: newRequestId() });
    expect(await failureOf(call)).toMatchObject({ code: status.CANCELLED, details: 'Cancelled before it was sent' });
    expect(used.created).toHaveLength(0);
  });

  test('is let go when the call is over', async () => {
    const { signal } = new AbortController();
    const remove = jest.spyOn(signal, 'removeEventListener');
    await used.client.createPayment(REQUEST, { signal, requestId: newRequestId() });
    expect(remove).toHaveBeenCalledWith('abort', expect.any(Function));
  });
});

test('close ends the channel: later calls fail', async () => {
  await used.client.createPayment(REQUEST, { requestId: newRequestId() });
  used.client.close();
  const error = await failureOf(used.client.createPayment(REQUEST, { requestId: newRequestId() }));
  expect(error.details).toContain('Channel has been shut down');
  expect(used.created).toHaveLength(1);
});

test('retries of the channel are off, whatever the channel options say', async () => {
  used.failures = 1;
  const retryPolicy = {
    maxAttempts: 5,
    initialBackoff: '0.01s',
    maxBackoff: '0.01s',
    backoffMultiplier: 1,
    retryableStatusCodes: ['UNAVAILABLE'],
  };
  const serviceConfig = { loadBalancingConfig: [], methodConfig: [{ name: [{}], retryPolicy }] };
  const options = {
    credentials: credentials.createInsecure(),
    channelOptions: { 'grpc.enable_retries': 1, 'grpc.service_config': JSON.stringify(serviceConfig) },
  };
  const stubborn = createPaymentsClient(used.address, options);
  await failureOf(stubborn.createPayment(REQUEST));
  stubborn.close();
  expect(used.created).toHaveLength(1);
});

test('only unary methods are offered, and a method can’t hide close()', () => {
  const options = { credentials: credentials.createInsecure(), policies: loadPolicies(descriptorSet) };
  const { getPayment } = PaymentsServiceService;
  const streaming = { ...getPayment, responseStream: true } as const;
  const made = createPromiseClient({ watch: streaming, get: getPayment }, used.address, options);
  made.close();
  expect(Object.keys(made)).toEqual(['get', 'close']);
  expect(() => createPromiseClient({ close: getPayment }, used.address, options)).toThrow(/GetPayment would hide/);
});
