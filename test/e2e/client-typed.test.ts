import {
  type ChannelCredentials,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import {
  type CreatePaymentRequest,
  PaymentsServiceService,
  type PaymentsServiceServer,
} from '../../src/gen/proto/payments/v1/payments';
import { createPromiseClient } from '../../src/idempotency/client/typed-client';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import { newRequestId } from '../../src/idempotency/request-id';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { metadataOf } from '../support/scripted-server';

const request: CreatePaymentRequest = {
  orderId: 'order-1',
  amountMinor: 9_007_199_254_740_993n,
  currency: 'EUR',
  paymentMethod: 'card-1',
  metadata: { note: 'first' },
  clientSentAt: undefined,
};

interface Created {
  readonly request: CreatePaymentRequest;
  readonly metadata: Metadata;
}

let server: Server;
let address: string;
let created: Created[];
let onCreate: () => void;
let failures: number;
let client: PaymentsClient;

beforeEach(async () => {
  created = [];
  failures = 0;
  onCreate = () => undefined;
  const unused = (): void => undefined;
  const handlers: PaymentsServiceServer = {
    createPayment: (call, answer) => {
      created.push(call);
      onCreate();
      if (created.length <= failures) answer({ code: status.UNAVAILABLE, details: 'down' });
      else if (call.request.orderId !== 'hang') answer(null, { payment: undefined });
    },
    getPayment: (_, answer) => answer({ code: status.NOT_FOUND, details: 'no such payment' }),
    refundPayment: unused,
    listPayments: unused,
    cancelPayment: unused,
    updatePayment: unused,
  };
  server = new Server();
  server.addService(PaymentsServiceService, handlers);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  address = `127.0.0.1:${port}`;
  client = createPaymentsClient(address, { credentials: credentials.createInsecure(), initialBackoffMs: 1 });
});

afterEach(() => {
  client.close();
  server.forceShutdown();
});

const failureOf = (call: Promise<unknown>): Promise<ServiceError> =>
  call.then(
    () => Promise.reject(new Error('expected a failure')),
    (error: ServiceError) => error,
  );

test('a keyed call is retried with its key and resolves with the response', async () => {
  failures = 2;
  const requestId = newRequestId();
  const response = await client.createPayment(request, { requestId });
  // The type is the response's: a misspelt field would not compile.
  expect(response.payment).toBeUndefined();
  expect(created.map(({ metadata }) => metadata.get('request-id'))).toEqual([[requestId], [requestId], [requestId]]);
  expect(created[0]?.request).toMatchObject({ ...request, clientSentAt: undefined });
});

test('a keyless call of an unknown level is sent once', async () => {
  failures = 1;
  const error = await failureOf(client.createPayment(request));
  expect(error.code).toBe(status.UNAVAILABLE);
  expect(error.details).toMatch(/^retry refused: no request-id/);
  expect(created).toHaveLength(1);
});

test('a service error comes as it is', async () => {
  const error = await failureOf(client.getPayment({ paymentId: 'none' }));
  expect(error).toMatchObject({ code: status.NOT_FOUND, details: 'no such payment' });
  expect(error.metadata).toBeInstanceOf(Metadata);
});

test('the metadata of a call is sent and not written to', async () => {
  const metadata = metadataOf({ tenant: 'a' });
  await client.createPayment(request, { requestId: newRequestId(), metadata });
  expect(created[0]?.metadata.get('tenant')).toEqual(['a']);
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
    const error = await failureOf(client.createPayment(request, { requestId }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain(expected);
    expect(created).toHaveLength(0);
  });

  test('malformed, in the metadata', async () => {
    const metadata = metadataOf({ 'request-id': 'order-1' });
    expect(await failureOf(client.createPayment(request, { metadata }))).toBeInstanceOf(TypeError);
    expect(created).toHaveLength(0);
  });

  test('given twice', async () => {
    const metadata = metadataOf({ 'request-id': id });
    const error = await failureOf(client.createPayment(request, { requestId: id, metadata }));
    expect(error.message).toBe('requestId: metadata request-id is set too; expected one of them');
    expect(created).toHaveLength(0);
  });
});

test('a key in the metadata is as good as requestId', async () => {
  failures = 1;
  const metadata = metadataOf({ 'request-id': newRequestId() });
  await client.createPayment(request, { metadata });
  expect(created).toHaveLength(2);
});

describe('a request that does not fit its type is refused before anything is sent', () => {
  test.each([
    ['without a field', { ...request, metadata: undefined }],
    ['with a number for a bigint', { ...request, amountMinor: 1250 }],
  ])('%s', async (_, unfit) => {
    const onEnd = jest.fn();
    const error = await failureOf(
      client.createPayment(unfit as unknown as CreatePaymentRequest, { requestId: newRequestId(), onEnd }),
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(onEnd).not.toHaveBeenCalled();
    expect(error.message).toMatch(
      /^createPayment: the request could not be serialized: .+; all fields are required, 64-bit numbers are bigint$/,
    );
    expect(created).toHaveLength(0);
  });
});

test('credentials of another copy of grpc-js are refused, saying how to get the right ones', () => {
  const foreign = { isSecure: () => false } as unknown as ChannelCredentials;
  expect(() => createPaymentsClient(address, { credentials: foreign })).toThrow(
    /^credentials: expected ChannelCredentials .* import { credentials } from 'grpc-idempotency', or keep one/,
  );
});

describe('time', () => {
  test('timeoutMs ends a call', async () => {
    const hanging = { ...request, orderId: 'hang' };
    const error = await failureOf(client.createPayment(hanging, { timeoutMs: 150, requestId: newRequestId() }));
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
  });

  test.each([0, -1, NaN, Infinity, 30_001])('timeoutMs %d is refused before anything is sent', async (timeoutMs) => {
    const error = await failureOf(client.createPayment(request, { timeoutMs }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/^timeoutMs: expected more than 0 and at most the client's 30000/);
    expect(created).toHaveLength(0);
  });
});

describe('signal', () => {
  test('aborts a running call', async () => {
    const abort = new AbortController();
    onCreate = () => abort.abort();
    const hanging = { ...request, orderId: 'hang' };
    const call = client.createPayment(hanging, { signal: abort.signal, requestId: newRequestId() });
    expect((await failureOf(call)).code).toBe(status.CANCELLED);
    expect(created).toHaveLength(1);
  });

  test('that was aborted before sends nothing', async () => {
    const call = client.createPayment(request, { signal: AbortSignal.abort(), requestId: newRequestId() });
    expect(await failureOf(call)).toMatchObject({ code: status.CANCELLED, details: 'Cancelled before it was sent' });
    expect(created).toHaveLength(0);
  });

  test('is let go when the call is over', async () => {
    const { signal } = new AbortController();
    const remove = jest.spyOn(signal, 'removeEventListener');
    await client.createPayment(request, { signal, requestId: newRequestId() });
    expect(remove).toHaveBeenCalledWith('abort', expect.any(Function));
  });
});

test('close ends the channel: later calls fail', async () => {
  await client.createPayment(request, { requestId: newRequestId() });
  client.close();
  const error = await failureOf(client.createPayment(request, { requestId: newRequestId() }));
  expect(error.details).toContain('Channel has been shut down');
  expect(created).toHaveLength(1);
});

test('retries of the channel are off, whatever the channel options say', async () => {
  failures = 1;
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
  const stubborn = createPaymentsClient(address, options);
  await failureOf(stubborn.createPayment(request));
  stubborn.close();
  expect(created).toHaveLength(1);
});

test('only unary methods are offered, and a method can’t hide close()', () => {
  const options = { credentials: credentials.createInsecure(), policies: loadPolicies(descriptorSet) };
  const { getPayment } = PaymentsServiceService;
  const streaming = { ...getPayment, responseStream: true } as const;
  const made = createPromiseClient({ watch: streaming, get: getPayment }, address, options);
  made.close();
  expect(Object.keys(made)).toEqual(['get', 'close']);
  expect(() => createPromiseClient({ close: getPayment }, address, options)).toThrow(/GetPayment would hide/);
});
