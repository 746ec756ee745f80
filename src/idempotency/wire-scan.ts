import { type BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { FieldShape, MessageShape } from './message-shape';

/** How deep messages may contain one another: the limit of the common protobuf implementations. */
export const MAX_DEPTH = 100;

/**
 * How many fields of a request are read, those of its messages and map entries among them; a packed field is one. Each
 * costs far more time to compare than the two bytes that it takes on the wire, and all of it is spent on the event loop.
 */
export const MAX_FIELDS = 100_000;

/** A stretch of the bytes that are read. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Bytes, the reader that walks over them, and how many fields it may still meet. */
export interface Source {
  readonly bytes: Uint8Array;
  readonly reader: BinaryReader;
  readonly allowance: FieldAllowance;
}

/** What is left of `MAX_FIELDS` for one request; all sources made from it share this. */
export interface FieldAllowance {
  left: number;
}

/** A field that the descriptor doesn't have, or not with this wire type. */
export interface UnknownField extends Range {
  readonly number: number;
  readonly wireType: WireType;
}

/** What one message holds, before any value is looked at. */
export interface ScannedMessage {
  /**
   * Where the values of each field are, by the field's place in the shape: without tag, length and end of group. One
   * stretch holds one value, or the many of a packed field.
   */
  readonly values: readonly (readonly Range[] | undefined)[];
  /** In wire order; without the tag, with all that follows it. */
  readonly unknown: readonly UnknownField[];
}

/**
 * Finds the fields of one message, with the rules by which a reader takes one occurrence over another: the last value of
 * a singular field counts (messages are merged), and a later member of a oneof clears the earlier (protobuf.dev,
 * encoding, "Last One Wins").
 *
 * @param depth of this message, 1 for the request itself
 * @throws Error where the bytes are not a message, or hold more than they may
 */
export function scanMessage(shape: MessageShape, source: Source, { start, end }: Range, depth: number): ScannedMessage {
  const { reader } = source;
  if (depth > MAX_DEPTH) throw new RangeError(`it is more than ${MAX_DEPTH} messages deep`);
  const values: (Range[] | undefined)[] = new Array<undefined>(shape.fields.length).fill(undefined);
  const unknown: UnknownField[] = [];
  const members: number[] = [];
  reader.pos = start;
  while (reader.pos < end) {
    const [number, wireType] = readTag(source);
    const slot = shape.slots.get(number);
    const field = slot === undefined ? undefined : shape.fields[slot];
    if (slot === undefined || field === undefined || !fits(field, wireType)) {
      const start = reader.pos;
      skip(source, number, wireType, depth);
      unknown.push({ number, wireType, start, end: reader.pos });
    } else {
      const range = readRange(source, number, wireType, depth);
      if (field.oneof !== undefined) {
        const earlier = members[field.oneof];
        if (earlier !== undefined && earlier !== slot) values[earlier] = undefined;
        members[field.oneof] = slot;
      }
      const before = values[slot];
      if (before === undefined || lastOneWins(field)) values[slot] = [range];
      else before.push(range);
    }
    if (reader.pos > end) throw new RangeError('a field ends after its message');
  }
  return { values, unknown };
}

/** Messages are merged instead. */
function lastOneWins({ layout }: FieldShape): boolean {
  return layout.kind === 'singular' && layout.value.kind !== 'message';
}

function fits(field: FieldShape, wireType: WireType): boolean {
  return wireType === field.wireType || (field.layout.kind === 'packed' && wireType === WireType.LengthDelimited);
}

function readTag({ reader, allowance }: Source): [number: number, wireType: WireType] {
  if (--allowance.left < 0) throw new RangeError(`it holds more than ${MAX_FIELDS} fields`);
  return reader.tag();
}

function readRange(source: Source, number: number, wireType: WireType, depth: number): Range {
  const { reader } = source;
  switch (wireType) {
    case WireType.LengthDelimited: {
      const length = reader.uint32();
      const start = reader.pos;
      reader.pos += length;
      return { start, end: reader.pos };
    }
    case WireType.StartGroup:
      return readGroup(source, number, depth + 1);
    case WireType.Varint:
    case WireType.Bit32:
    case WireType.Bit64:
    case WireType.EndGroup: {
      const start = reader.pos;
      reader.skip(wireType, number);
      return { start, end: reader.pos };
    }
  }
}

function skip(source: Source, number: number, wireType: WireType, depth: number): void {
  if (wireType === WireType.StartGroup) readGroup(source, number, depth + 1);
  else source.reader.skip(wireType, number);
}

/** Where the fields of a group are. They count each time they are passed, so that groups in groups cost no more. */
function readGroup(source: Source, number: number, depth: number): Range {
  if (depth > MAX_DEPTH) throw new RangeError(`it is more than ${MAX_DEPTH} messages deep`);
  const start = source.reader.pos;
  for (;;) {
    const end = source.reader.pos;
    const [inner, wireType] = readTag(source);
    if (wireType === WireType.EndGroup) {
      if (inner !== number) throw new Error('a group ends with the number of another');
      return { start, end };
    }
    skip(source, inner, wireType, depth);
  }
}
