/**
 * Every metadata name that the package speaks. No other file spells one.
 *
 * All of our own marks on an answer are trailers: initial metadata before an error status makes a standard client treat
 * the call as answered and give up its retries (gRFC A6, case J1).
 */

/** Default name of the request metadata that carries the key. Not `x-request-id`: meshes make that one anew per hop. */
export const REQUEST_ID = 'request-id';

/** Trailer, `true` on an answer that was recorded by an earlier attempt. */
export const REPLAYED = 'idempotent-replayed';

/** Trailer on keyed calls: until when the record is kept at least (RFC 3339, UTC). */
export const EXPIRES_AT = 'idempotency-expires-at';

/** Trailer: milliseconds a client is asked to wait before its next attempt; −1 asks it to stop (gRFC A6). */
export const RETRY_PUSHBACK = 'grpc-retry-pushback-ms';

/** Request metadata: how many attempts of this call came before (gRFC A6). */
export const PREVIOUS_ATTEMPTS = 'grpc-previous-rpc-attempts';

/** Request metadata of Envoy: which attempt this is, from 1. */
export const ENVOY_ATTEMPT = 'x-envoy-attempt-count';

/** Request metadata: the program that calls, and below it the library that does so for it. */
export const USER_AGENT = 'user-agent';

/** Trailer with a serialized google.rpc.Status. */
export const STATUS_DETAILS = 'grpc-status-details-bin';

/** Whether a trailer is not a service's to set: those of gRPC and HTTP, and the marks of this package. */
export function isReservedTrailer(name: string): boolean {
  if (name === STATUS_DETAILS) return false;
  return RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix)) || RESERVED_TRAILERS.has(name);
}

/**
 * Whether a trailer may have one value at most: the HTTP/2 of Node throws at a second one, and an answer that held two could
 * never be sent.
 */
export function isSingleValueTrailer(name: string): boolean {
  return SINGLE_VALUE_TRAILERS.has(name);
}

const RESERVED_PREFIXES = ['grpc-', 'idempotency-', ':'];

/** HTTP/2 carries none of those that speak of a connection: an answer that held one could never be sent (RFC 9113, 8.2.2). */
const RESERVED_TRAILERS: ReadonlySet<string> = new Set([
  ...[REPLAYED, 'content-type', 'content-length', 'date', 'te', 'trailer'],
  ...['connection', 'http2-settings', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'],
]);

/** Those of the list in Node that are not reserved anyway. */
const SINGLE_VALUE_TRAILERS: ReadonlySet<string> = new Set([
  ...['access-control-allow-credentials', 'access-control-max-age', 'access-control-request-method', 'age'],
  ...['authorization', 'content-encoding', 'content-language', 'content-location', 'content-md5', 'content-range'],
  ...['dnt', 'etag', 'expires', 'from', 'host', 'if-match', 'if-modified-since', 'if-none-match', 'if-range'],
  ...['if-unmodified-since', 'last-modified', 'location', 'max-forwards', 'proxy-authorization', 'range', 'referer'],
  ...['retry-after', 'tk', 'upgrade-insecure-requests', 'user-agent', 'x-content-type-options'],
]);
