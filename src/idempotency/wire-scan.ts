import { type BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { FieldShape, MessageShape } from './message-shape';

/** How deep messages may contain one another: the limit of the common protobuf implementations. */
export const MAX_DEPTH = 100;

/** A stretch of the bytes that are read. */
export interface Range {
  readonly start: number;
  readonly end: number;
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
 * @throws Error where the bytes are not a message; its text is for nobody
 */
export function scanMessage(
  shape: MessageShape,
  reader: BinaryReader,
  { start, end }: Range,
  depth: number,
): ScannedMessage {
  if (depth > MAX_DEPTH) throw new RangeError(`it is more than ${MAX_DEPTH} messages deep`);
  const values: (Range[] | undefined)[] = new Array<undefined>(shape.fields.length).fill(undefined);
  const unknown: UnknownField[] = [];
  const members: number[] = [];
  reader.pos = start;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const slot = shape.slots.get(number);
    const field = slot === undefined ? undefined : shape.fields[slot];
    if (slot === undefined || field === undefined || !fits(field, wireType)) {
      const start = reader.pos;
      reader.skip(wireType, number, MAX_DEPTH - depth);
      unknown.push({ number, wireType, start, end: reader.pos });
    } else {
      const range = readRange(reader, number, wireType);
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

function readRange(reader: BinaryReader, number: number, wireType: WireType): Range {
  switch (wireType) {
    case WireType.LengthDelimited: {
      const length = reader.uint32();
      const start = reader.pos;
      reader.pos += length;
      return { start, end: reader.pos };
    }
    case WireType.StartGroup:
      return readGroup(reader, number);
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

function readGroup(reader: BinaryReader, number: number): Range {
  const start = reader.pos;
  for (;;) {
    const end = reader.pos;
    const [inner, wireType] = reader.tag();
    if (wireType === WireType.EndGroup) {
      if (inner !== number) throw new Error('a group ends with the number of another');
      return { start, end };
    }
    reader.skip(wireType, inner);
  }
}
