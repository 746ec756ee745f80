import { constants, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type Metadata, status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/request-id';
import { startCuttingProxy } from '../support/cutting-proxy';
import { useScriptedClients } from '../support/scripted-client';
import {
  metadataOf,
  type Outcome,
  PATHS,
  type RawClient,
  type Reply,
  type ScriptedServer,
  succeed,
} from '../support/scripted-server';

const keyed = (): Metadata => metadataOf({ 'request-id': newRequestId() });

const { atEnd, clientOf, serve } = useScriptedClients();

/** The first call runs, and the connection dies before its answer is on the way. */
async function setUp(...later: Reply[]): Promise<{ server: ScriptedServer; client: RawClient }> {
  let cut = (): void => undefined;
  const server = await serve(() => cut(), ...later);
  const proxy = await startCuttingProxy(server.port);
  atEnd(() => proxy.close());
  cut = proxy.cut;
  return { server, client: clientOf(proxy.address).client };
}

describe('the handler ran and its answer was dropped', () => {
  test('keyless: exactly one attempt arrives and the error says why', async () => {
    const { server, client } = await setUp(succeed('twice'));
    const { error } = await client.call(PATHS.unknown);
    expect(server.arrivals).toHaveLength(1);
    expect(error?.code).toBe(status.UNAVAILABLE);
    expect(error?.details).toMatch(/^retry refused: no request-id\./);
  });

  test('keyed: the same key arrives again and the caller gets the answer', async () => {
    const { server, client } = await setUp(succeed('done'));
    const outcome = await client.call(PATHS.unknown, { metadata: keyed() });
    expect(outcome).toMatchObject({ error: null, text: 'done' });
    const ids = server.arrivals.map(({ metadata }) => metadata.get('request-id').join());
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
  });

  test('a read is sent again without a key', async () => {
    const { server, client } = await setUp(succeed('done'));
    expect(await client.call(PATHS.safe)).toMatchObject({ error: null, text: 'done' });
    expect(server.arrivals).toHaveLength(2);
  });
});

// Case J8: what a server that goes away, or a broken gateway, leaves of a call.
describe('a stream that breaks', () => {
  const message = Buffer.from([0, 0, 0, 0, 2, ...Buffer.from('ok')]);
  const headers = { ':status': 200, 'content-type': 'application/grpc' };

  const succeedRaw = (stream: ServerHttp2Stream): void => {
    stream.respond(headers, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(message);
  };

  async function callThrough(breakStream: (stream: ServerHttp2Stream) => void): Promise<[Outcome, number]> {
    let streams = 0;
    const server = createServer();
    server.on('stream', (stream) => {
      stream.on('error', () => undefined);
      streams += 1;
      // Not from within what it reads: Node has freed memory twice when a session ended there.
      if (streams === 1) setImmediate(breakStream, stream);
      else succeedRaw(stream);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => server.close());
    const { client } = clientOf(`127.0.0.1:${(server.address() as AddressInfo).port}`);
    return [await client.call(PATHS.safe), streams];
  }

  test.each<[string, (stream: ServerHttp2Stream) => void]>([
    ['is reset with NO_ERROR', (stream) => stream.close(constants.NGHTTP2_NO_ERROR)],
    ['is reset with INTERNAL_ERROR', (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
    ['is refused', (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM)],
    ['is told to calm down', (stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
    ['is reset with CANCEL', (stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ['loses its session', (stream) => stream.session?.destroy()],
    ['goes away with an error', (stream) => stream.session?.destroy(undefined, constants.NGHTTP2_INTERNAL_ERROR)],
    ['answers with HTTP 500', (stream) => stream.respond({ ':status': 500 }, { endStream: true })],
    [
      'ends after the message, without a status',
      (stream) => {
        stream.respond(headers);
        stream.end(Buffer.from([0, 0, 0, 0, 4, ...Buffer.from('lost')]));
      },
    ],
    [
      'ends with trailers that have no status',
      (stream) => {
        stream.respond(headers, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ other: 'yes' }));
        stream.end(Buffer.from([0, 0, 0, 0, 4, ...Buffer.from('lost')]));
      },
    ],
  ])('when it %s, is retried', async (_, breakStream) => {
    const [outcome, streams] = await callThrough(breakStream);
    expect(outcome).toMatchObject({ error: null, text: 'ok' });
    expect(streams).toBe(2);
  });

  test.each<[string, status, (stream: ServerHttp2Stream) => void]>([
    ['HTTP 400', status.INTERNAL, (stream) => stream.respond({ ':status': 400 }, { endStream: true })],
    ['HTTP 404', status.UNIMPLEMENTED, (stream) => stream.respond({ ':status': 404 }, { endStream: true })],
  ])('%s is not', async (_, code, breakStream) => {
    const [outcome, streams] = await callThrough(breakStream);
    expect([outcome.error?.code, streams]).toEqual([code, 1]);
  });
});
