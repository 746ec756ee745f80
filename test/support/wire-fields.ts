import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** Writes one field of a message, as a sender of any kind might. */
export type Write = (writer: BinaryWriter) => unknown;

const { Varint, LengthDelimited, StartGroup, EndGroup } = WireType;

/** The bytes of a message with these fields, in this order. */
export function wire(...fields: readonly Write[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of fields) field(writer);
  return writer.finish();
}

/** No field. */
export const nothing: Write = () => undefined;

/** Several fields as one. */
export const both =
  (...fields: readonly Write[]): Write =>
  (writer) =>
    writer.raw(wire(...fields));

/** A varint of 32 bits. */
export const int32 =
  (number: number, value: number): Write =>
  (writer) =>
    writer.tag(number, Varint).int32(value);

/** A varint of 64 bits. */
export const int64 =
  (number: number, value: bigint): Write =>
  (writer) =>
    writer.tag(number, Varint).int64(value);

/** A string. */
export const string =
  (number: number, value: string): Write =>
  (writer) =>
    writer.tag(number, LengthDelimited).string(value);

/** A message, length first. */
export const message =
  (number: number, ...fields: readonly Write[]): Write =>
  (writer) =>
    writer.tag(number, LengthDelimited).bytes(wire(...fields));

/** A message between the tags of a group. */
export const group =
  (number: number, ...fields: readonly Write[]): Write =>
  (writer) =>
    writer
      .tag(number, StartGroup)
      .raw(wire(...fields))
      .tag(number, EndGroup);

/** Any bytes behind a tag, right or wrong. */
export const raw =
  (number: number, type: WireType, ...data: readonly number[]): Write =>
  (writer) =>
    writer.tag(number, type).raw(Uint8Array.from(data));
