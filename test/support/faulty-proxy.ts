import { connect, constants, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** An answer of the server behind the proxy, whole. */
interface Relayed {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Undefined where the answer was Trailers-Only. */
  readonly trailers: IncomingHttpHeaders | undefined;
}

/** Ends a stream otherwise than with its answer. `relayed` is undefined where the server was not asked. */
export type Fault = (stream: ServerHttp2Stream, relayed: Relayed | undefined) => void;

/** What happens to one stream, and when: before the server is asked, or once it has answered, so that it has done it. */
export interface FaultyStream {
  readonly when: 'before' | 'after';
  readonly fault: Fault;
}

/** A proxy that speaks HTTP/2 without TLS and knows where a gRPC answer begins and ends. */
export interface FaultyProxy {
  readonly address: string;
  /** Streams that came from clients. */
  readonly streams: readonly IncomingHttpHeaders[];
  close(): void;
}

const reset =
  (code: number): Fault =>
  (stream) =>
    stream.close(code);

/** What becomes of a stream or its connection (cases J4 and J8). */
export const FAULTS: Readonly<Record<string, Fault>> = {
  'RST_STREAM NO_ERROR': reset(constants.NGHTTP2_NO_ERROR),
  'RST_STREAM INTERNAL_ERROR': reset(constants.NGHTTP2_INTERNAL_ERROR),
  'RST_STREAM REFUSED_STREAM': reset(constants.NGHTTP2_REFUSED_STREAM),
  'RST_STREAM CANCEL': reset(constants.NGHTTP2_CANCEL),
  'RST_STREAM ENHANCE_YOUR_CALM': reset(constants.NGHTTP2_ENHANCE_YOUR_CALM),
  'GOAWAY NO_ERROR, and closed': (stream) => {
    stream.session?.goaway(constants.NGHTTP2_NO_ERROR);
    setImmediate(() => stream.session?.destroy());
  },
  'GOAWAY INTERNAL_ERROR': (stream) => stream.session?.destroy(undefined, constants.NGHTTP2_INTERNAL_ERROR),
  'a connection cut': (stream) => stream.session?.destroy(),
  'a cut between message and trailers': (stream, relayed) => {
    stream.respond(headersOf(relayed?.headers ?? { ':status': '200', 'content-type': 'application/grpc' }));
    stream.write(relayed?.body ?? Buffer.alloc(5), () => setImmediate(() => stream.session?.destroy()));
  },
  'an answer that never comes': () => undefined,
};

/** Starts a proxy on loopback; the nth stream gets the nth fault, those after the last are relayed. */
export async function startFaultyProxy(
  targetPort: number,
  faults: readonly FaultyStream[],
  port = 0,
): Promise<FaultyProxy> {
  const streams: IncomingHttpHeaders[] = [];
  const target = connect(`http://127.0.0.1:${targetPort}`);
  target.on('error', () => undefined);
  const server = createServer();
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    const planned = faults[streams.length];
    streams.push(headers);
    void bodyOf(stream).then(async (body) => {
      // Not from within what the session reads: Node has freed memory twice when a stream or a session ended there.
      await new Promise(setImmediate);
      if (planned?.when === 'before') return planned.fault(stream, undefined);
      const relayed = await relay(headers, body);
      await new Promise(setImmediate);
      if (planned !== undefined) return planned.fault(stream, relayed);
      answer(stream, relayed);
    });
  });
  const relay = (headers: IncomingHttpHeaders, body: Buffer): Promise<Relayed> =>
    new Promise((resolve, reject) => {
      const request = target.request(headersOf(headers));
      let answered: IncomingHttpHeaders = {};
      let trailers: IncomingHttpHeaders | undefined;
      request.on('response', (received: IncomingHttpHeaders) => void (answered = received));
      request.on('trailers', (received: IncomingHttpHeaders) => void (trailers = received));
      request.on('error', reject);
      void bodyOf(request).then((answer) => resolve({ headers: answered, body: answer, trailers }));
      request.end(body);
    });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    streams,
    close: () => {
      for (const session of sessions) session.destroy();
      server.close();
      target.destroy();
    },
  };
}

function answer(stream: ServerHttp2Stream, { headers, body, trailers }: Relayed): void {
  if (stream.destroyed) return;
  if (trailers === undefined) return stream.respond(headersOf(headers), { endStream: true });
  stream.respond(headersOf(headers), { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(headersOf(trailers)));
  stream.end(body);
}

function bodyOf(stream: NodeJS.ReadableStream): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', () => resolve(Buffer.concat(parts)));
  });
}

/** Node hands headers out with symbols that it does not take back. */
function headersOf(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'date'));
}
