import { once } from 'node:events';
import { connect, constants, type IncomingHttpHeaders } from 'node:http2';

/** What a raw call was told. */
export interface RawAnswer {
  readonly code: number;
  readonly message: string;
  /** The first HEADERS frame. */
  readonly headers: IncomingHttpHeaders;
  /** That frame ended the stream: the answer is Trailers-Only. */
  readonly endedByHeaders: boolean;
  /** The serialized response; undefined without one. */
  readonly response: Buffer | undefined;
}

/**
 * A call by hand over HTTP/2, so that a test can send what no gRPC client sends, and see each frame that came back.
 *
 * @param messages each is framed and sent; none at all is possible
 * @param metadata values are sent as they are, one byte a character
 */
export async function rawCall(
  port: number,
  path: string,
  messages: readonly Uint8Array[],
  metadata: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  const session = connect(`http://127.0.0.1:${port}`);
  try {
    const stream = session.request({
      ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
      ...metadata,
    });
    let headers: IncomingHttpHeaders = {};
    let endedByHeaders = false;
    let told: IncomingHttpHeaders = {};
    const body: Buffer[] = [];
    stream.on('response', (received, flags) => {
      told = headers = received;
      endedByHeaders = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    });
    stream.on('trailers', (received: IncomingHttpHeaders) => {
      told = { ...told, ...received };
    });
    stream.on('data', (chunk: Buffer) => body.push(chunk));
    for (const message of messages) stream.write(frame(message));
    stream.end();
    await once(stream, 'close');
    return {
      code: Number(told['grpc-status']),
      message: decodeURIComponent(told['grpc-message']?.toString() ?? ''),
      ...{ headers, endedByHeaders },
      response: body.length === 0 ? undefined : Buffer.concat(body).subarray(5),
    };
  } finally {
    session.close();
  }
}

/** Uncompressed: a zero byte, the length, the message. */
function frame(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
