import { WireType } from '@bufbuild/protobuf/wire';
import { canonicalForm, UnreadableRequestError } from '../../src/idempotency/canonical-form';
import { compileEverything } from '../support/everything-message';
import { group, message, nothing, raw, wire, type Write } from '../support/wire-fields';

const everything = compileEverything();
const { Varint, LengthDelimited, StartGroup, EndGroup, Bit32 } = WireType;

function hex(...fields: readonly Write[]): string {
  return Buffer.from(canonicalForm(everything, wire(...fields))).toString('hex');
}

describe('bytes that are not a message are refused', () => {
  it.each<[string, Write]>([
    ['a length beyond the end', raw(14, LengthDelimited, 5, 1)],
    ['a length beyond the end of its message', raw(19, LengthDelimited, 2, 0x72, 5)],
    ['a number beyond the end', raw(8, Bit32, 1)],
    ['a varint without an end', raw(1, Varint, 0x80)],
    ['a varint of eleven bytes', raw(2, Varint, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1)],
    ['a tag without a number', (writer) => writer.raw(Uint8Array.of(0, 1))],
    ['the end of a group that never began', (writer) => writer.tag(31, EndGroup)],
    ['a group that never ends', (writer) => writer.tag(31, StartGroup)],
    ['a group that ends as another', (writer) => writer.tag(31, StartGroup).tag(32, EndGroup)],
    ['an unknown group that ends as another', (writer) => writer.tag(99, StartGroup).tag(98, EndGroup)],
    [
      'packed numbers cut short',
      (writer) => writer.tag(20, LengthDelimited).bytes(Uint8Array.of(1, 0x80)).raw(Uint8Array.of(8, 1)),
    ],
    [
      'a number that ends after its message',
      (writer) => writer.tag(19, LengthDelimited).bytes(Uint8Array.of(8, 0x80)).raw(Uint8Array.of(8, 1)),
    ],
  ])('%s', (_, field) => {
    expect(() => hex(field)).toThrow(UnreadableRequestError);
  });

  const nested = (levels: number, wrap: (inner: Write) => Write): Write =>
    Array.from({ length: levels - 1 }).reduce<Write>((inner) => wrap(inner), nothing);

  it.each<[string, (inner: Write) => Write]>([
    ['messages', (inner) => message(19, inner)],
    ['lists', (inner) => message(22, inner)],
    ['groups', (inner) => group(31, inner)],
    ['unknown groups', (inner) => group(99, inner)],
  ])('more than 100 levels of %s', (_, wrap) => {
    expect(() => hex(nested(100, wrap))).not.toThrow();
    expect(() => hex(nested(101, wrap))).toThrow(UnreadableRequestError);
  });

  it('more than 100 levels of map entries and their values', () => {
    const wrap = (inner: Write): Write => message(25, message(2, inner));
    expect(() => hex(nested(50, wrap))).not.toThrow();
    expect(() => hex(nested(51, wrap))).toThrow(UnreadableRequestError);
  });
});
