import type { CreatePaymentResponse } from '../../src/gen/proto/payments/v1/payments';

/** The tag of a field that CreatePaymentResponse does not have: number 15, any bytes. */
const TAG = (15 << 3) | 2;

const PATTERN = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), Buffer.alloc(256)]);

/** Bytes in which each of the 256 values stands somewhere, runs of zeros too. */
export function anyBytes(length: number): Buffer {
  return Buffer.alloc(length, PATTERN);
}

/** An answer that is so many bytes on the wire and in the record: nothing, or a field that holds any bytes. */
export function answerOfSize(size: number): CreatePaymentResponse {
  if (size === 0) return { payment: undefined };
  for (const lengthBytes of [1, 2, 3, 4]) {
    const content = anyBytes(Math.max(0, size - 1 - lengthBytes));
    const field = Buffer.concat([varint(content.length), content]);
    if (field.length === size - 1) return { payment: undefined, _unknownFields: { [TAG]: [field] } };
  }
  throw new Error(`no such message is ${size} bytes long`);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}
