import type { DescMessage } from '@bufbuild/protobuf';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { writeCanonical } from './canonical-writer';
import { messageShape } from './message-shape';

/**
 * The bytes of a request are not a message of its type, or it is more than is compared: messages in one another more than
 * 100 levels deep (`MAX_DEPTH`), or more than 100,000 fields (`MAX_FIELDS`).
 */
export class UnreadableRequestError extends Error {
  override readonly name = 'UnreadableRequestError';
}

/**
 * The one serialization that all serializations of a message have in common (design 4.4, cases E1 to E3): fields in the
 * order of their numbers, numbers at their shortest, repeated numbers packed, map entries in the order of their keys with
 * key and value spelled out, defaults of fields without presence left out, repeated singular messages merged, unknown
 * fields behind the known one of their number and otherwise as they came, fields with `not_in_fingerprint` left out.
 *
 * It reads the bytes and not a decoded message, so that 64-bit numbers stay exact, strings stay bytes, and what the
 * descriptor doesn't know stays in. And it is a serialization of that message itself: so two messages that differ can't
 * have the same form.
 *
 * Fingerprints are kept, so it may only change together with their version.
 *
 * @throws UnreadableRequestError
 */
export function canonicalForm(message: DescMessage, bytes: Uint8Array): Uint8Array {
  const writer = new BinaryWriter();
  try {
    writeCanonical(writer, messageShape(message), bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UnreadableRequestError(`the request is not a readable ${message.typeName}: ${reason}`, { cause });
  }
  return writer.finish();
}
