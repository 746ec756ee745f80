import { REQUEST_ID } from '../idempotency/index';

/** The largest payload that is taken, bytes: well below what a gRPC server takes, and what a queue should carry. */
export const MAX_PAYLOAD_BYTES = 64 * 1024;
/** The most that the names and values of headers may take together, bytes. */
export const MAX_HEADER_BYTES = 4 * 1024;
const MAX_NAME_LENGTH = 255;

/** What is to be told. */
export interface NewEvent {
  /** What kind of thing it is about, for example `payment`. */
  readonly aggregateType: string;
  /** Which one. Events of one aggregate are delivered in the order in which they were added. */
  readonly aggregateId: string;
  /** What happened or is asked for, for example `receipts.v1.SendReceipt`: what the relay finds its way by. */
  readonly type: string;
  /** Bytes, or what is written as JSON in UTF-8. At most 64 KiB. */
  readonly payload: Uint8Array | JsonObject;
  /** Sent along as metadata, for example `traceparent`; 4 KiB at most. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What JSON can write without losing anything. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** An object of JSON. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** An event that was checked, as it is stored. */
export interface EncodedEvent {
  readonly payload: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Checks an event and encodes its payload.
 *
 * @throws TypeError that names every field at fault and what was expected; it never repeats a value
 */
export function encodeEvent({ aggregateType, aggregateId, type, payload, headers = {} }: NewEvent): EncodedEvent {
  const faults = Object.entries({ aggregateType, aggregateId, type })
    .filter(([, value]) => !isName(value))
    .map(([name]) => `${name}: expected a text of 1 to ${MAX_NAME_LENGTH} characters, well-formed and without U+0000`);
  const bytes = encodePayload(payload);
  if (bytes === undefined) faults.push('payload: expected bytes, or an object that JSON can write');
  else if (bytes.length > MAX_PAYLOAD_BYTES) {
    faults.push(`payload: expected at most ${MAX_PAYLOAD_BYTES} bytes, got ${bytes.length}`);
  }
  faults.push(...headerFaults(headers));
  if (faults.length > 0 || bytes === undefined) throw new TypeError(`event: ${faults.join('; ')}`);
  return { payload: bytes, headers };
}

function encodePayload(payload: unknown): Uint8Array | undefined {
  if (payload instanceof Uint8Array) return payload;
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return undefined;
  try {
    const text = JSON.stringify(payload) as string | undefined;
    return text === undefined ? undefined : Buffer.from(text);
  } catch {
    // A bigint, or a circle.
    return undefined;
  }
}

/** Names and values that arrive as they were sent: gRPC drops spaces around a value, and joins several with commas. */
function headerFaults(headers: unknown): readonly string[] {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    return ['headers: expected an object of texts'];
  }
  const entries = Object.entries(headers);
  const faults = entries
    .filter(
      ([name, value]) => !isMetadataName(name) || typeof value !== 'string' || !/^[!-~]([ -~]*[!-~])?$/.test(value),
    )
    .map(([name]) => `headers[${JSON.stringify(name)}]: expected a metadata name of one's own and printable ASCII`);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);
  if (bytes > MAX_HEADER_BYTES) faults.push(`headers: expected at most ${MAX_HEADER_BYTES} bytes, got ${bytes}`);
  return faults;
}

/** `grpc-` belongs to gRPC, and the key is the id of the event. */
function isMetadataName(name: string): boolean {
  return /^(?!grpc-)[0-9a-z_.-]+(?<!-bin)$/.test(name) && name !== REQUEST_ID;
}

/** A lone surrogate would be stored as U+FFFD: two aggregates would be one. Postgres stores no U+0000. */
function isName(value: unknown): boolean {
  if (typeof value !== 'string' || value.length < 1 || value.length > MAX_NAME_LENGTH) return false;
  return value.isWellFormed() && !value.includes('\u0000');
}
