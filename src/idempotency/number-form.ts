import { ScalarType } from '@bufbuild/protobuf';
import { type BinaryReader, type BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** How a number is brought from any of its encodings to the one that the canonical form uses. */
export interface NumberForm {
  readonly wireType: WireType;
  /** Reads one number and writes its shortest encoding. */
  copy(reader: BinaryReader, writer: BinaryWriter): void;
  /** Reads one number and tells whether it is the default: false or +0. −0 is another value. */
  isDefault(reader: BinaryReader): boolean;
}

/** Every type of strings and bytes aside. An enum is an INT32. */
export type NumberType = Exclude<ScalarType, ScalarType.STRING | ScalarType.BYTES>;

const FLOAT_NAN = 0x7fc00000;
const DOUBLE_NAN = 0x7ff8000000000000n;

/**
 * The form of one type. Readers keep the low 32 bits of a varint that is too long for its type and take any that is not
 * zero for true, so those are the same value here. Zigzag numbers stay as they are: each has one zigzag. All NaN are one.
 */
export function numberForm(type: NumberType): NumberForm {
  switch (type) {
    case ScalarType.INT32:
      return form(
        WireType.Varint,
        0,
        (reader) => reader.int32(),
        (writer, value) => writer.int32(value),
      );
    case ScalarType.UINT32:
    case ScalarType.SINT32:
      return form(
        WireType.Varint,
        0,
        (reader) => reader.uint32(),
        (writer, value) => writer.uint32(value),
      );
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
      return form(
        WireType.Varint,
        0n,
        (reader) => BigInt(reader.uint64()),
        (writer, value) => writer.uint64(value),
      );
    case ScalarType.BOOL:
      return form(
        WireType.Varint,
        false,
        (reader) => reader.bool(),
        (writer, value) => writer.bool(value),
      );
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return form(
        WireType.Bit32,
        0,
        (reader) => reader.fixed32(),
        (writer, value) => writer.fixed32(value),
      );
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return form(
        WireType.Bit64,
        0n,
        (reader) => BigInt(reader.fixed64()),
        (writer, value) => writer.fixed64(value),
      );
    case ScalarType.FLOAT:
      return form(WireType.Bit32, 0, (reader) => reader.float(), writeFloat);
    case ScalarType.DOUBLE:
      return form(WireType.Bit64, 0, (reader) => reader.double(), writeDouble);
  }
}

function form<T>(
  wireType: WireType,
  byDefault: T,
  read: (reader: BinaryReader) => T,
  write: (writer: BinaryWriter, value: T) => void,
): NumberForm {
  return {
    wireType,
    copy: (reader, writer) => write(writer, read(reader)),
    isDefault: (reader) => Object.is(read(reader), byDefault),
  };
}

// The bits of a NaN that JavaScript writes are the engine's choice, so they are spelled out.
function writeFloat(writer: BinaryWriter, value: number): void {
  if (Number.isNaN(value)) writer.fixed32(FLOAT_NAN);
  else writer.float(value);
}

function writeDouble(writer: BinaryWriter, value: number): void {
  if (Number.isNaN(value)) writer.fixed64(DOUBLE_NAN);
  else writer.double(value);
}
