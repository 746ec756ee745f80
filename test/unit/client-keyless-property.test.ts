import { type InterceptorOptions, Metadata, type NextCall, status, type StatusObject } from '@grpc/grpc-js';
import fc from 'fast-check';
import { descriptorSet } from '../../src/gen/descriptor-set';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import { createRetryBudget } from '../../src/idempotency/client/retry-budget';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import { refusalStatus } from '../../src/idempotency/wire/error-details';
import { metadataOf, PATHS } from '../support/scripted-server';

const policies = loadPolicies(descriptorSet);

type Underlying = ReturnType<NextCall>;

/** Sends one call through an interceptor over a channel that fails every attempt so; resolves with how many there were. */
function attemptsOf(options: Partial<ClientOptions>, path: string, metadata: Metadata, failure: StatusObject) {
  return new Promise<number>((resolve) => {
    let attempts = 0;
    const nextCall = (): Underlying => ({
      start: (_, listener) => {
        attempts += 1;
        setImmediate(() => listener?.onReceiveStatus?.(failure));
      },
      sendMessageWithContext: () => undefined,
      sendMessage: () => undefined,
      halfClose: () => undefined,
      startRead: () => undefined,
      cancelWithStatus: () => undefined,
      getPeer: () => '',
      getAuthContext: () => null,
    });
    const same = (bytes: Buffer): Buffer => bytes;
    const callOptions: InterceptorOptions = {
      method_definition: {
        ...{ path, requestStream: false, responseStream: false, requestSerialize: same, responseDeserialize: same },
      },
    };
    const call = createClientInterceptor({ policies, ...options })(callOptions, nextCall);
    call.start(metadata, {
      onReceiveMetadata: () => undefined,
      onReceiveMessage: () => undefined,
      onReceiveStatus: () => resolve(attempts),
    });
    call.sendMessage(Buffer.from('pay'));
    call.halfClose();
  });
}

const limits = {
  timeoutMs: fc.integer({ min: 50, max: 100_000 }),
  attemptTimeoutMs: fc.integer({ min: 1, max: 50 }),
  maxAttempts: fc.integer({ min: 1, max: 50 }),
};

const anyOptions = fc.record(
  {
    ...limits,
    methods: fc.record(limits, { requiredKeys: ['timeoutMs'] }).map((own) => ({ [PATHS.unknown]: own })),
    initialBackoffMs: fc.integer({ min: 1, max: 2 }),
    maxBackoffMs: fc.integer({ min: 2, max: 3 }),
    backoffMultiplier: fc.double({ min: 1, max: 9, noNaN: true }),
    random: fc.constantFrom(
      () => 0,
      () => 0.999,
    ),
    waitForReady: fc.boolean(),
    keyLifetimeMs: fc.integer({ min: 1, max: 1e12 }),
    retryBudget: fc.integer({ min: 1, max: 1_000 }).map((maxTokens) => createRetryBudget({ maxTokens })),
    requestIdName: fc.constantFrom('request-id', 'intent-id'),
  },
  { requiredKeys: ['initialBackoffMs', 'maxBackoffMs', 'attemptTimeoutMs'] },
) as fc.Arbitrary<Partial<ClientOptions>>;

/** Every status, made by a server or on this side, with all that could ask for another attempt. */
const anyFailure = fc
  .record({
    code: fc.integer({ min: 1, max: 17 }),
    details: fc.constantFrom(
      ...['', 'down', 'Call cancelled', 'Received RST_STREAM with code 2', 'Received HTTP status code 503'],
      ...['Deadline exceeded', 'Deadline exceeded after 0.1s,wait_for_ready,Waiting for LB pick'],
    ),
    advice: fc.constantFrom<Record<string, string | Buffer>>(
      {},
      { 'grpc-retry-pushback-ms': '0' },
      { 'content-type': 'application/grpc' },
      refusalStatus({ reason: 'REQUEST_IN_PROGRESS', message: '', retryAfterMs: 1 }).metadata.getMap(),
      refusalStatus({ reason: 'STORE_UNAVAILABLE', message: '', retryAfterMs: 1 }).metadata.getMap(),
    ),
  })
  .map(({ advice, ...failed }) => ({ ...failed, metadata: metadataOf(advice) }));

/** What a call carries under the name of a key, and under other names, that is no key. */
const anyMetadata = fc
  .constantFrom(
    ...[{}, { 'request-id': '' }, { 'request-id': 'order-1' }, { 'request-id-bin': Buffer.alloc(16) }],
    ...[{ 'x-request-id': 'bd1d5e22-2b1c-4f5e-9a0f-6a4f0c2c7d11' }, { 'grpc-previous-rpc-attempts': '3' }],
    ...[{ 'request-id': '00000000-0000-0000-0000-000000000000' }, { 'request-id': 'a, b' }],
  )
  .map((entries) => {
    const metadata = metadataOf(entries);
    metadata.setOptions({ waitForReady: true, idempotentRequest: true });
    return metadata;
  });

test('no options, no failure and no metadata have a keyless call of an unknown level sent twice', async () => {
  const path = fc.constantFrom(PATHS.unknown, PATHS.unregistered);
  await fc.assert(
    fc.asyncProperty(anyOptions, path, anyMetadata, anyFailure, async (options, called, metadata, failure) => {
      expect(await attemptsOf(options, called, metadata, failure)).toBeLessThanOrEqual(1);
    }),
    { numRuns: 1_000 },
  );
}, 60_000);

test('the same calls are sent again where their level allows it: the property can fail', async () => {
  const down = { code: status.UNAVAILABLE, details: 'down', metadata: new Metadata() };
  const options = { maxAttempts: 3, initialBackoffMs: 1 };
  expect(await attemptsOf(options, PATHS.safe, new Metadata(), down)).toBe(3);
});
