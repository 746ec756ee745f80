import { hash } from 'node:crypto';
import { parseKey, type RequestKey } from './key';
import { lengthPrefixed } from './length-prefixed';
import type { RecordSubject } from './record-id';
import { isStableName, STABLE_NAME_EXPECTED } from './stable-name';

/** What stands before the parts of each kind of derived key, so that the two kinds never meet. */
const BY_CALLER = 'grpc-idempotency/derived-request-id/1';
const BY_SERVER = 'grpc-idempotency/derived-key/1';

/**
 * The key of a further call that belongs to the same intent: always the same for a parent and a name, another for every
 * other name. A caller that sends one intent to two services, or one order to a warehouse line by line, makes and keeps
 * one key and derives the rest.
 *
 * It is a UUID, dated like its parent: of version 7 with the same millisecond, or of version 8 (RFC 9562, 5.8) for an
 * undated parent, which a method that asks for UUIDv7 keys refuses. Its age counts from the parent's making.
 *
 * @param parent a key as it is sent: a UUID in either case, or 16 to 128 visible ASCII characters without comma
 * @param name what the further call is for, for example `ship`; kept for ever, since a new name is a new intent
 * @throws TypeError if either is not one; it never repeats the key
 */
export function derivedRequestId(parent: string, name: string): string {
  const key = readParent(parent);
  return derive([BY_CALLER, key.text, checkedName(name)], key);
}

/**
 * The key of an outside effect of a request: always the same for an account, a method, a key and a name (design 4.10). So
 * the attempt that takes over sends the key that the dead one has sent, and two accounts that share a key never share an
 * effect. Dated like the key of the request, as `derivedRequestId` says.
 *
 * @param name of the effect, unique in its method
 * @throws TypeError if it can't be a name
 */
export function derivedKeyOf({ scope, path, key }: RecordSubject, name: string): string {
  return derive([BY_SERVER, scope, path, key.text, checkedName(name)], key);
}

/**
 * The same as an attempt's `derivedKey`, for whoever finishes by hand or by a job what a request has begun outside: the key
 * under which the other side knows it.
 *
 * @param request its account, its method as on the wire, `/package.Service/Method`, and its key
 * @param name of the effect
 * @throws TypeError if one of them can't be such; it never repeats the key
 */
export function effectKeyOf(
  { scope, path, requestId }: { readonly scope: string; readonly path: string; readonly requestId: string },
  name: string,
): string {
  return derivedKeyOf({ scope, path, key: readParent(requestId) }, name);
}

function readParent(parent: string): RequestKey {
  // An array of one text would read like that text.
  if (typeof parent !== 'string') throw new TypeError('parent: expected a key');
  const reading = parseKey([parent], 'OPAQUE');
  switch (reading.kind) {
    case 'key':
      return reading.key;
    case 'missing':
      throw new TypeError('parent: expected a key, got an empty text');
    case 'malformed':
      throw new TypeError(`parent: ${reading.description}`);
  }
}

function checkedName(name: string): string {
  if (!isStableName(name)) throw new TypeError(`name: expected ${STABLE_NAME_EXPECTED}`);
  return name;
}

/** 74 bits of the hash beside the parent's time, or 122 of them. What is derived is kept elsewhere: it never changes. */
function derive(parts: readonly string[], { dated }: RequestKey): string {
  const digits = hash('sha256', lengthPrefixed(parts), 'hex');
  const start = dated === undefined ? digits.slice(20, 32) : dated.atMs.toString(16).padStart(12, '0');
  const version = dated === undefined ? '8' : '7';
  const variant = ((Number.parseInt(digits.slice(3, 4), 16) & 0x3) | 0x8).toString(16);
  return [
    start.slice(0, 8),
    start.slice(8),
    version + digits.slice(0, 3),
    variant + digits.slice(4, 7),
    digits.slice(7, 19),
  ].join('-');
}
