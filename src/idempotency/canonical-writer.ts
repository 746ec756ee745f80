import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { FieldLayout, FieldShape, MessageShape, ValueShape } from './message-shape';
import type { NumberForm } from './number-form';
import { type FieldAllowance, MAX_FIELDS, type Range, scanMessage, type Source, type UnknownField } from './wire-scan';

/**
 * Writes the canonical form of a message; `canonicalForm` says what that is.
 *
 * @throws Error where the bytes are not a message of that shape, or hold more than `MAX_DEPTH` and `MAX_FIELDS` allow
 */
export function writeCanonical(writer: BinaryWriter, shape: MessageShape, bytes: Uint8Array): void {
  writeMessage(writer, shape, sourceOf(bytes, { left: MAX_FIELDS }), wholeOf(bytes), 1);
}

function sourceOf(bytes: Uint8Array, allowance: FieldAllowance): Source {
  return { bytes, reader: new BinaryReader(bytes), allowance };
}

function wholeOf(bytes: Uint8Array): Range {
  return { start: 0, end: bytes.length };
}

function writeMessage(writer: BinaryWriter, shape: MessageShape, source: Source, range: Range, depth: number): void {
  const { values, unknown } = scanMessage(shape, source, range, depth);
  const rest = inOrderOfNumbers(unknown);
  let written = 0;
  for (const [slot, field] of shape.fields.entries()) {
    written = writeUnknownBelow(field.number, writer, source, rest, written);
    writeField(writer, field, source, values[slot], depth);
  }
  writeUnknownBelow(Infinity, writer, source, rest, written);
}

/** Most senders write fields in the order of their numbers, and then there is nothing to sort. */
function inOrderOfNumbers(fields: readonly UnknownField[]): readonly UnknownField[] {
  const inOrder = fields.every(({ number }, place) => number >= (fields[place - 1]?.number ?? 0));
  return inOrder ? fields : fields.toSorted((left, right) => left.number - right.number);
}

/** Returns how many of the fields are written then. */
function writeUnknownBelow(
  limit: number,
  writer: BinaryWriter,
  source: Source,
  fields: readonly UnknownField[],
  written: number,
): number {
  let next = written;
  for (let field = fields[next]; field !== undefined && field.number < limit; field = fields[++next]) {
    writeUnknown(writer, source, field);
  }
  return next;
}

function writeUnknown(writer: BinaryWriter, { bytes }: Source, { number, wireType, start, end }: UnknownField): void {
  writer.tag(number, wireType).raw(bytes.subarray(start, end));
}

function writeField(
  writer: BinaryWriter,
  field: FieldShape,
  source: Source,
  values: readonly Range[] | undefined,
  depth: number,
): void {
  if (field.leftOut) return;
  const first = values?.[0];
  if (values === undefined || first === undefined) {
    if (field.whenAbsent !== undefined) writer.raw(field.whenAbsent);
    return;
  }
  const { layout } = field;
  switch (layout.kind) {
    case 'singular':
      if (values.length > 1) {
        const merged = Buffer.concat(values.map(({ start, end }) => source.bytes.subarray(start, end)));
        writeValue(writer, field, layout.value, sourceOf(merged, source.allowance), wholeOf(merged), depth);
      } else if (!(layout.implicitPresence && isDefault(layout.value, source, first))) {
        writeValue(writer, field, layout.value, source, first, depth);
      }
      return;
    case 'repeated':
      for (const range of values) writeValue(writer, field, layout.value, source, range, depth);
      return;
    case 'packed':
      writePacked(writer, field.number, layout.form, source, values);
      return;
    case 'map':
      writeEntries(writer, field.number, layout, source, values, depth);
      return;
  }
}

function writeValue(
  writer: BinaryWriter,
  { number, wireType }: FieldShape,
  value: ValueShape,
  source: Source,
  range: Range,
  depth: number,
): void {
  writer.tag(number, wireType);
  switch (value.kind) {
    case 'number':
      source.reader.pos = range.start;
      value.form.copy(source.reader, writer);
      return;
    case 'bytes':
      writer.bytes(source.bytes.subarray(range.start, range.end));
      return;
    case 'message':
      if (wireType === WireType.StartGroup) {
        writeMessage(writer, value.shape, source, range, depth + 1);
        writer.tag(number, WireType.EndGroup);
      } else {
        writer.fork();
        writeMessage(writer, value.shape, source, range, depth + 1);
        writer.join();
      }
      return;
  }
}

function isDefault(value: ValueShape, { reader }: Source, { start, end }: Range): boolean {
  if (value.kind !== 'number') return start === end;
  reader.pos = start;
  return value.form.isDefault(reader);
}

function writePacked(
  writer: BinaryWriter,
  number: number,
  form: NumberForm,
  { reader }: Source,
  values: readonly Range[],
): void {
  if (values.every(({ start, end }) => start === end)) return;
  writer.tag(number, WireType.LengthDelimited).fork();
  for (const { start, end } of values) {
    reader.pos = start;
    while (reader.pos < end) form.copy(reader, writer);
    if (reader.pos > end) throw new RangeError('a packed number ends after its field');
  }
  writer.join();
}

/**
 * Writes the entries of a map in the order of their keys, those with one key in the order they came. All are first written
 * as they came and then moved: buffers and readers for each would take longer than all the rest.
 */
function writeEntries(
  writer: BinaryWriter,
  number: number,
  { entry: shape, laterWins }: FieldLayout & { kind: 'map' },
  source: Source,
  values: readonly Range[],
  depth: number,
): void {
  const unordered = new BinaryWriter();
  for (const range of values) {
    unordered.fork();
    writeMessage(unordered, shape, source, range, depth + 1);
    unordered.join();
  }
  const bytes = Buffer.from(unordered.finish().buffer);
  const byKey = new Map<string, Range[]>();
  for (const { key, ...range } of keyedEntries(bytes)) {
    const earlier = laterWins ? undefined : byKey.get(key);
    if (earlier === undefined) byKey.set(key, [range]);
    else earlier.push(range);
  }
  for (const key of [...byKey.keys()].sort()) {
    for (const { start, end } of byKey.get(key) ?? []) {
      writer.tag(number, WireType.LengthDelimited).raw(bytes.subarray(start, end));
    }
  }
}

/**
 * Where each entry is, with its length. Its key is that of its canonical form, where it comes first; one character per
 * byte.
 */
function* keyedEntries(bytes: Buffer): Generator<Range & { readonly key: string }> {
  const reader = new BinaryReader(bytes);
  for (let start = 0; start < bytes.length; start = reader.pos) {
    const length = reader.uint32();
    const keyStart = reader.pos;
    const [number, wireType] = reader.tag();
    reader.skip(wireType, number);
    const key = bytes.toString('latin1', keyStart, reader.pos);
    reader.pos = keyStart + length;
    yield { key, start, end: reader.pos };
  }
}
