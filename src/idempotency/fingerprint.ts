import { hash, timingSafeEqual } from 'node:crypto';
import type { DescMessage } from '@bufbuild/protobuf';
import { canonicalForm } from './canonical-form';

/**
 * The version of the canonical form. It goes up when the same message would get another form; records of both versions
 * then live side by side until the older ones are past their retention.
 */
const VERSION = 1;
const VERSION_BYTES = 1;
const HASH_BYTES = 32;
const RECEIVED = { start: VERSION_BYTES, end: VERSION_BYTES + HASH_BYTES };
const CANONICAL = { start: RECEIVED.end, end: RECEIVED.end + HASH_BYTES };

/**
 * What a request means, in 65 bytes: the version, the SHA-256 of the bytes as received, the SHA-256 of their canonical
 * form (design 4.4). Every later version keeps the first 33 bytes as they are.
 *
 * @param request the type of the request
 * @param bytes the request as received
 * @throws UnreadableRequestError where the bytes are not a message of that type, or too deep or too many to compare
 */
export function fingerprint(request: DescMessage, bytes: Uint8Array): Buffer {
  return Buffer.concat([
    Buffer.of(VERSION),
    hash('sha256', bytes, 'buffer'),
    hash('sha256', canonicalForm(request, bytes), 'buffer'),
  ]);
}

/**
 * Whether two requests under one key are the same one: either hash equal is enough. The hash of the received bytes holds
 * across every deploy, that of the canonical form across languages and encoders (cases E1 and E2).
 *
 * Between two versions only the received bytes are compared, and a fingerprint that is cut short equals nothing: in
 * doubt it is another request, which is refused, where a false "same" would hand out the answer to another question.
 * Takes the same time wherever the hashes differ.
 */
export function sameRequest(stored: Uint8Array, presented: Uint8Array): boolean {
  const received = equalPart(stored, presented, RECEIVED);
  const canonical = equalPart(stored, presented, CANONICAL) && stored[0] === presented[0];
  return received || canonical;
}

function equalPart(left: Uint8Array, right: Uint8Array, { start, end }: { start: number; end: number }): boolean {
  if (left.length < end || right.length < end) return false;
  return timingSafeEqual(left.subarray(start, end), right.subarray(start, end));
}
