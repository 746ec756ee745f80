import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { FieldLayout, FieldShape, MessageShape, ValueShape } from './message-shape';
import type { NumberForm } from './number-form';
import { type Range, scanMessage, type UnknownField } from './wire-scan';

/** Bytes and the reader that walks over them. */
interface Source {
  readonly bytes: Uint8Array;
  readonly reader: BinaryReader;
}

/**
 * Writes the canonical form of a message; `canonicalForm` says what that is.
 *
 * @throws Error where the bytes are not a message of that shape
 */
export function writeCanonical(writer: BinaryWriter, shape: MessageShape, bytes: Uint8Array): void {
  writeMessage(writer, shape, sourceOf(bytes), wholeOf(bytes), 1);
}

function sourceOf(bytes: Uint8Array): Source {
  return { bytes, reader: new BinaryReader(bytes) };
}

function wholeOf(bytes: Uint8Array): Range {
  return { start: 0, end: bytes.length };
}

function writeMessage(writer: BinaryWriter, shape: MessageShape, source: Source, range: Range, depth: number): void {
  const { values, unknown } = scanMessage(shape, source.reader, range, depth);
  const rest = unknown.toSorted((left, right) => left.number - right.number);
  let written = 0;
  const writeUnknownBelow = (number: number): void => {
    for (let field = rest[written]; field !== undefined && field.number < number; field = rest[++written]) {
      writeUnknown(writer, source, field);
    }
  };
  shape.fields.forEach((field, slot) => {
    writeUnknownBelow(field.number);
    writeField(writer, field, source, values[slot] ?? [], depth);
  });
  writeUnknownBelow(Infinity);
}

function writeUnknown(writer: BinaryWriter, { bytes }: Source, { number, wireType, start, end }: UnknownField): void {
  writer.tag(number, wireType).raw(bytes.subarray(start, end));
}

function writeField(
  writer: BinaryWriter,
  field: FieldShape,
  source: Source,
  values: readonly Range[],
  depth: number,
): void {
  if (field.leftOut) return;
  const [first, ...others] = values;
  if (first === undefined) {
    if (field.whenAbsent !== undefined) writer.raw(field.whenAbsent);
    return;
  }
  const { layout } = field;
  switch (layout.kind) {
    case 'singular':
      if (others.length > 0) {
        const merged = Buffer.concat(values.map(({ start, end }) => source.bytes.subarray(start, end)));
        writeValue(writer, field, layout.value, sourceOf(merged), wholeOf(merged), depth);
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
      for (const entry of canonicalEntries(layout, source, values, depth)) {
        writer.tag(field.number, WireType.LengthDelimited).bytes(entry);
      }
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

/** The entries of a map in the order of their keys, those with one key in the order they came. */
function canonicalEntries(
  { entry: shape, laterWins }: FieldLayout & { kind: 'map' },
  source: Source,
  values: readonly Range[],
  depth: number,
): readonly Uint8Array[] {
  const writer = new BinaryWriter();
  const entries = new Map<string, Uint8Array[]>();
  for (const range of values) {
    writeMessage(writer, shape, source, range, depth + 1);
    const entry = writer.finish();
    const key = keyOf(entry);
    const earlier = entries.get(key);
    if (earlier === undefined || laterWins) entries.set(key, [entry]);
    else earlier.push(entry);
  }
  return [...entries].sort(([left], [right]) => (left < right ? -1 : 1)).flatMap(([, sameKey]) => sameKey);
}

/** The key of an entry in its canonical form, where it comes first; one character per byte. */
function keyOf(entry: Uint8Array): string {
  const reader = new BinaryReader(entry);
  const [number, wireType] = reader.tag();
  reader.skip(wireType, number);
  return Buffer.from(entry.buffer, entry.byteOffset, reader.pos).toString('latin1');
}
