import type { Metadata } from '@grpc/grpc-js';

/**
 * The text of a status and its trailers travel as one block of HTTP/2 headers, of which Node takes 64 KiB and no more;
 * what is larger never arrives. Others take less: C++ and Java 8 KiB unless they are told otherwise. Bytes, with room left
 * for the headers of gRPC itself.
 */
const MOST_BYTES = 60 * 1024;

/** Left beside {@link MOST_BYTES} for the marks that an answer gets when it is sent. */
const MARKS_BYTES = 1024;

/**
 * Checks that a status can be sent, with all marks still to come. What passes is never refused by {@link assertSendable}.
 *
 * @throws Error when it is more than any client takes
 */
export function assertFitsHeaders(text: string, metadata: Metadata): void {
  assertAtMost(MOST_BYTES, text, metadata);
}

/**
 * Checks that a status with its marks can be sent.
 *
 * @throws Error when it is more than any client takes
 */
export function assertSendable(text: string, metadata: Metadata): void {
  assertAtMost(MOST_BYTES + MARKS_BYTES, text, metadata);
}

function assertAtMost(mostBytes: number, text: string, metadata: Metadata): void {
  const trailers = Object.entries(metadata.toHttp2Headers()).map(([name, value]) => `${name}${String(value)}`);
  const bytes = encodeURI(text).length + trailers.join('').length;
  if (bytes <= mostBytes) return;
  const [taken, most] = [bytes.toLocaleString('en'), mostBytes.toLocaleString('en')];
  throw new Error(`a status takes ${taken} bytes with its trailers: expected at most ${most}`);
}
