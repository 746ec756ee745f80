import { type CallProperties, Client, credentials, InterceptingCall, type Interceptor, Metadata } from '@grpc/grpc-js';
import { CHANNEL_OPTIONS } from '../../src/idempotency/client/channel-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import { newRequestId } from '../../src/idempotency/request-id';
import { down, policies, useScriptedClients } from '../support/scripted-client';
import { type Arrival, metadataOf, PATHS, rawClient, type ScriptedServer, succeed } from '../support/scripted-server';

const ID = newRequestId();

const { atEnd, serve } = useScriptedClients();

/** `between` runs after each failed attempt, before the next one is sent. */
function retrying(between: () => void = () => undefined): Interceptor {
  return createClientInterceptor({
    policies,
    initialBackoffMs: 1,
    onEvent: ({ type }) => {
      if (type === 'retry') between();
    },
  });
}

const startServer = (): Promise<ScriptedServer> => serve(down, down, succeed('done'));

const messages = (arrivals: readonly Arrival[]): string[] => arrivals.map(({ message }) => message.toString());

test('metadata and message that change while the call runs don’t change what is sent', async () => {
  const server = await startServer();
  const message = Buffer.from('pay 5');
  const metadata = metadataOf({ 'request-id': ID, tenant: 'a' });
  const client = rawClient(server.address, [
    retrying(() => {
      message.write('pay 9');
      metadata.set('request-id', newRequestId());
      metadata.set('tenant', 'b');
    }),
  ]);
  atEnd(() => client.client.close());
  await client.call(PATHS.unknown, { message, metadata });
  expect(messages(server.arrivals)).toEqual(['pay 5', 'pay 5', 'pay 5']);
  expect(server.arrivals.map((arrival) => arrival.metadata.get('request-id'))).toEqual([[ID], [ID], [ID]]);
  expect(server.arrivals.map((arrival) => arrival.metadata.get('tenant'))).toEqual([['a'], ['a'], ['a']]);
});

test('the metadata of the caller is never written to', async () => {
  const server = await startServer();
  const metadata = metadataOf({ 'request-id': ID });
  const client = rawClient(server.address, [retrying()], CHANNEL_OPTIONS);
  atEnd(() => client.client.close());
  await client.call(PATHS.unknown, { metadata });
  expect(metadata.getMap()).toEqual({ 'request-id': ID });
});

interface Payment {
  amount: number;
}

/** A client of typed messages, whose serializer counts. */
function typedCall(
  client: Client,
  message: Payment,
  serialize: (message: Payment) => Buffer,
): Promise<{ details?: string; text?: string | undefined }> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      PATHS.safe,
      serialize,
      (bytes: Buffer) => bytes.toString(),
      message,
      new Metadata(),
      {},
      (error, text) => resolve(error ? { details: error.details } : { text }),
    );
  });
}

test('a message is serialized once', async () => {
  const server = await startServer();
  const message = { amount: 5 };
  const interceptor = retrying(() => (message.amount = 9));
  const client = new Client(server.address, credentials.createInsecure(), { interceptors: [interceptor] });
  atEnd(() => client.close());
  let count = 0;
  const serialize = ({ amount }: Payment): Buffer => Buffer.from(`pay ${amount} #${(count += 1)}`);
  expect(await typedCall(client, message, serialize)).toEqual({ text: 'done' });
  expect(messages(server.arrivals)).toEqual(['pay 5 #1', 'pay 5 #1', 'pay 5 #1']);
});

test('a message that does not fit its type fails without an attempt', async () => {
  const server = await startServer();
  const client = new Client(server.address, credentials.createInsecure(), { interceptors: [retrying()] });
  atEnd(() => client.close());
  const outcome = await typedCall(client, { amount: 5 }, () => {
    throw new Error('not an amount');
  });
  expect(outcome.details).toBe('Request message serialization failure: Error: not an amount');
  expect(server.arrivals).toHaveLength(0);
});

test('a method definition that calls share keeps nothing of the call before', async () => {
  const server = await startServer();
  const message = { amount: 5 };
  const shared = {
    path: PATHS.safe,
    requestStream: false,
    responseStream: false,
    requestSerialize: ({ amount }: Payment) => Buffer.from(`pay ${amount}`),
    responseDeserialize: (bytes: Buffer) => bytes.toString(),
  } as const;
  const client = new Client(server.address, credentials.createInsecure(), {
    interceptors: [retrying()],
    callInvocationTransformer: (properties): CallProperties<unknown, unknown> => ({
      ...properties,
      methodDefinition: shared as CallProperties<unknown, unknown>['methodDefinition'],
    }),
  });
  atEnd(() => client.close());
  await typedCall(client, message, shared.requestSerialize);
  message.amount = 6;
  await typedCall(client, message, shared.requestSerialize);
  expect(messages(server.arrivals)).toEqual(['pay 5', 'pay 5', 'pay 5', 'pay 6']);
});

test('interceptors listed later see every attempt with the message as it is, those listed before see one call', async () => {
  const server = await startServer();
  const seen: string[] = [];
  const spy =
    (name: string): Interceptor =>
    (options, nextCall) =>
      new InterceptingCall(nextCall(options), {
        sendMessage: (message: Buffer, next) => {
          seen.push(`${name} ${message.toString()}`);
          next(message);
        },
      });
  const client = rawClient(server.address, [spy('outer'), retrying(), spy('inner')]);
  atEnd(() => client.client.close());
  const outcome = await client.call(PATHS.safe, { message: Buffer.from('pay') });
  expect(outcome.text).toBe('done');
  expect(seen).toEqual(['outer pay', 'inner pay', 'inner pay', 'inner pay']);
});

test('what an interceptor below adds to one attempt is not in the next', async () => {
  const server = await startServer();
  const adding: Interceptor = (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start: (metadata, listener, next) => {
        metadata.add('token', 'fresh');
        next(metadata, listener);
      },
    });
  const client = rawClient(server.address, [retrying(), adding]);
  atEnd(() => client.client.close());
  await client.call(PATHS.safe);
  expect(server.arrivals.map((arrival) => arrival.metadata.get('token'))).toEqual([['fresh'], ['fresh'], ['fresh']]);
});
