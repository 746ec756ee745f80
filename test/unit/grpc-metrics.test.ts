import {
  type Client,
  credentials,
  type handleUnaryCall,
  makeClientConstructor,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect, constants } from 'node:http2';
import { Registry } from 'prom-client';
import { GRPC_CODES } from '../../src/ops/grpc-labels';
import { createGrpcMetrics } from '../../src/ops/grpc-metrics';

const PATH = '/test.v1.Echo/Say';
const LABELS = 'grpc_type="unary",grpc_service="test.v1.Echo",grpc_method="Say"';
const MAX_MESSAGE_BYTES = 64;

const say: MethodDefinition<string, string> = {
  path: PATH,
  requestStream: false,
  responseStream: false,
  requestSerialize: (text) => Buffer.from(text),
  requestDeserialize: (bytes) => {
    if (bytes.toString() === 'unreadable') throw new Error('unreadable');
    return bytes.toString();
  },
  responseSerialize: (text) => Buffer.from(text),
  responseDeserialize: (bytes) => bytes.toString(),
};

const EchoClient = makeClientConstructor({ say }, 'Echo');

let registry: Registry;
let server: Server;
let port: number;
let client: Client;
let handle: handleUnaryCall<string, string>;

beforeEach(async () => {
  registry = new Registry();
  server = new Server({
    interceptors: [createGrpcMetrics(registry, [say])],
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  });
  handle = (call, callback) => callback(null, call.request);
  const handler: handleUnaryCall<string, string> = (call, callback) => handle(call, callback);
  server.addService({ say }, { say: handler });
  port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  client = new EchoClient(`127.0.0.1:${port}`, credentials.createInsecure());
});

afterEach(() => {
  client.close();
  server.forceShutdown();
});

/** Sends one call; resolves with the code the client saw. */
function call(text: string, deadlineMs = 30_000): { readonly ended: Promise<status>; readonly cancel: () => void } {
  let cancel = () => {};
  const ended = new Promise<status>((resolve) => {
    const options = { deadline: Date.now() + deadlineMs };
    const heard = (error: ServiceError | null) => resolve(error?.code ?? status.OK);
    const { requestSerialize, responseDeserialize } = say;
    const running = client.makeUnaryRequest(PATH, requestSerialize, responseDeserialize, text, options, heard);
    cancel = () => running.cancel();
  });
  return { ended, cancel };
}

/** Waits until the server has seen the last of every call, and reads all counts. */
async function counts(): Promise<{ started: number; handled: Record<string, number>; timed: number }> {
  client.close();
  await new Promise<void>((resolve, reject) => server.tryShutdown((error) => (error ? reject(error) : resolve())));
  // The notice that a call is over comes one turn after its stream.
  await new Promise((resolve) => setImmediate(resolve));
  const text = await registry.metrics();
  const value = (series: string) => {
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
    if (line === undefined) throw new Error(`no series ${series}`);
    return Number(line.slice(series.length + 1));
  };
  const handled = GRPC_CODES.map(
    (code) => [code, value(`grpc_server_handled_total{${LABELS},grpc_code="${code}"}`)] as const,
  );
  return {
    started: value(`grpc_server_started_total{${LABELS}}`),
    handled: Object.fromEntries(handled.filter(([, count]) => count !== 0)),
    timed: value(`grpc_server_handling_seconds_count{${LABELS}}`),
  };
}

/** A handler that answers only when it is let. */
function holdHandler() {
  let release = () => {};
  const running = new Promise<{ readonly dropped: Promise<void> }>((reached) => {
    handle = (request, callback) => {
      release = () => callback(null, request.request);
      reached({ dropped: new Promise((resolve) => request.once('cancelled', () => resolve())) });
    };
  });
  return { running, release: () => release() };
}

test('every series of a served method is at 0 from the start (case M2)', async () => {
  expect(await counts()).toEqual({ started: 0, handled: {}, timed: 0 });
});

test('the type of a method follows from its streams', async () => {
  const registryOfAll = new Registry();
  const stream = (path: string, requestStream: boolean, responseStream: boolean) => ({
    path,
    requestStream,
    responseStream,
  });
  createGrpcMetrics(registryOfAll, [
    stream('/test.v1.Echo/Up', true, false),
    stream('/test.v1.Echo/Down', false, true),
    stream('/test.v1.Echo/Both', true, true),
  ]);
  const text = await registryOfAll.metrics();
  expect(text).toContain('{grpc_type="client_stream",grpc_service="test.v1.Echo",grpc_method="Up"} 0');
  expect(text).toContain('{grpc_type="server_stream",grpc_service="test.v1.Echo",grpc_method="Down"} 0');
  expect(text).toContain('{grpc_type="bidi_stream",grpc_service="test.v1.Echo",grpc_method="Both"} 0');
});

test('an answered call counts once, as OK', async () => {
  expect(await call('hello').ended).toBe(status.OK);
  expect(await counts()).toEqual({ started: 1, handled: { OK: 1 }, timed: 1 });
});

test('a call answered with an error counts once, under its code', async () => {
  handle = (_call, callback) => callback({ code: status.FAILED_PRECONDITION, details: 'no' });
  expect(await call('hello').ended).toBe(status.FAILED_PRECONDITION);
  expect(await counts()).toEqual({ started: 1, handled: { FailedPrecondition: 1 }, timed: 1 });
});

test('a call past its deadline counts once, also when its handler answers late', async () => {
  const handler = holdHandler();
  const { ended } = call('hello', 150);
  const { dropped } = await handler.running;
  expect(await ended).toBe(status.DEADLINE_EXCEEDED);
  await dropped;
  handler.release();
  expect(await counts()).toEqual({ started: 1, handled: { DeadlineExceeded: 1 }, timed: 1 });
});

test('a cancelled call counts once, as Canceled, also when its handler answers late', async () => {
  const handler = holdHandler();
  const { ended, cancel } = call('hello');
  const { dropped } = await handler.running;
  cancel();
  expect(await ended).toBe(status.CANCELLED);
  await dropped;
  handler.release();
  expect(await counts()).toEqual({ started: 1, handled: { Canceled: 1 }, timed: 1 });
});

test.each([
  ['20S', 'Canceled'],
  ['45m', 'DeadlineExceeded'],
])('a peer that hangs up at once, of the %s it had given, counts as %s', async (timeout, code) => {
  const handler = holdHandler();
  const session = connect(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': PATH,
    te: 'trailers',
    'content-type': 'application/grpc',
    'grpc-timeout': timeout,
  });
  stream.end(Buffer.from([0, 0, 0, 0, 1, 65]));
  await handler.running;
  stream.close(constants.NGHTTP2_CANCEL);
  await once(stream, 'close');
  session.close();
  expect(await counts()).toEqual({ started: 1, handled: { [code]: 1 }, timed: 1 });
});

test.each([
  ['too large', 'x'.repeat(MAX_MESSAGE_BYTES + 1), status.RESOURCE_EXHAUSTED, 'ResourceExhausted'],
  ['unreadable', 'unreadable', status.INTERNAL, 'Internal'],
])('a request that is %s counts under the code its caller sees', async (_name, text, code, label) => {
  expect(await call(text).ended).toBe(code);
  expect(await counts()).toEqual({ started: 1, handled: { [label]: 1 }, timed: 1 });
});

test('calls of unknown methods add no series (case M1)', async () => {
  const before = (await registry.metrics()).split('\n').length;
  for (let index = 0; index < 20; index += 1) {
    const path = `/random.v1.Service${index}/Method`;
    const code = await new Promise<status | undefined>((resolve) => {
      const heard = (error: ServiceError | null) => resolve(error?.code);
      client.makeUnaryRequest(path, say.requestSerialize, say.responseDeserialize, '', heard);
    });
    expect(code).toBe(status.UNIMPLEMENTED);
  }
  expect((await registry.metrics()).split('\n')).toHaveLength(before);
});
