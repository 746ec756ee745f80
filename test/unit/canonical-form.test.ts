import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { WireType } from '@bufbuild/protobuf/wire';
import { canonicalForm } from '../../src/idempotency/canonical-form';
import { compileProto } from '../support/compile-proto';
import { compileEverything } from '../support/everything-message';
import { group, int32, int64, message, raw, string, wire, type Write } from '../support/wire-fields';

const everything = compileEverything();
const { Varint, Bit64, LengthDelimited, Bit32 } = WireType;

function hex(...fields: readonly Write[]): string {
  return Buffer.from(canonicalForm(everything, wire(...fields))).toString('hex');
}

describe('two serializations of one message have one form', () => {
  const entry = (key: string, value: string): Write => message(24, string(1, key), string(2, value));

  it.each<[string, Write[], Write[]]>([
    [
      'fields in another order',
      [string(14, 'a'), int64(2, 5n), int32(1, 3)],
      [int32(1, 3), int64(2, 5n), string(14, 'a')],
    ],
    ['map entries in another order', [entry('b', '2'), entry('a', '1')], [entry('a', '1'), entry('b', '2')]],
    [
      'the later of two map entries with one key',
      [entry('a', '1'), entry('b', '2'), entry('a', '3')],
      [entry('a', '3'), entry('b', '2')],
    ],
    ['a map entry with value before key', [message(24, string(2, '1'), string(1, 'a'))], [entry('a', '1')]],
    ['a map entry without its empty key', [message(24, string(2, '1'))], [entry('', '1')]],
    ['a map entry without its empty value', [message(24, string(1, 'a'))], [entry('a', '')]],
    ['a map entry without its number key', [message(25, message(2))], [message(25, int64(1, 0n), message(2))]],
    ['a map entry without its message', [message(25, int64(1, 7n))], [message(25, int64(1, 7n), message(2))]],
    ['a map entry without its key and enum', [message(26)], [message(26, int32(1, 0), int32(2, 0))]],
    ['a map entry without its closed enum', [message(36)], [message(36, string(1, ''), int32(2, 2))]],
    [
      'a map entry without its 64 and 32 bits',
      [message(37)],
      [message(37, raw(1, Bit64, 0, 0, 0, 0, 0, 0, 0, 0), raw(2, Bit32, 0, 0, 0, 0))],
    ],
    [
      'a map entry without its 32 and 64 bits',
      [message(38)],
      [message(38, raw(1, Bit32, 0, 0, 0, 0), raw(2, Bit64, 0, 0, 0, 0, 0, 0, 0, 0))],
    ],
    [
      'a map value in two parts',
      [message(25, message(2, int32(1, 3)), int64(1, 7n), message(2, int32(3, 4)))],
      [message(25, int64(1, 7n), message(2, int32(1, 3), int32(3, 4)))],
    ],
    ['the sender left numbers unpacked', [int32(20, 1), int32(20, 300)], [raw(20, LengthDelimited, 3, 1, 0xac, 2)]],
    [
      'the sender packed in parts',
      [raw(20, LengthDelimited, 1, 1), int32(20, 2), raw(20, LengthDelimited, 0)],
      [raw(20, LengthDelimited, 2, 1, 2)],
    ],
    ['an empty packed field', [raw(20, LengthDelimited, 0)], []],
    [
      'doubles packed although declared expanded',
      [raw(23, LengthDelimited, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f)],
      [raw(23, Bit64, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f)],
    ],
    ['closed enums packed and not', [int32(35, 1), int32(35, 9)], [raw(35, LengthDelimited, 2, 1, 9)]],
    ['the last of a number sent twice', [int32(1, 3), int32(1, 4)], [int32(1, 4)]],
    ['a default that displaces a value', [int32(1, 3), int32(1, 0)], []],
    ['the last of a string sent twice', [string(17, 'a'), string(17, 'b')], [string(17, 'b')]],
    [
      'a message in two parts',
      [message(19, int32(1, 3)), string(14, 'x'), message(19, int32(3, 4), int32(1, 5))],
      [message(19, int32(1, 5), int32(3, 4)), string(14, 'x')],
    ],
    [
      'a group in two parts',
      [group(31, int32(1, 3)), group(31, string(14, 'x'))],
      [group(31, int32(1, 3), string(14, 'x'))],
    ],
    [
      'parts of parts',
      [message(19, message(19, int32(1, 3))), message(19, message(19, int32(3, 4)))],
      [message(19, message(19, int32(1, 3), int32(3, 4)))],
    ],
    ['a later member of a oneof', [string(27, 'a'), int32(28, 0)], [int32(28, 0)]],
    [
      'a message of a oneof after another member',
      [message(29, int32(1, 3)), string(27, 'a'), message(29, int32(3, 4))],
      [message(29, int32(3, 4))],
    ],
    [
      'a message of a oneof in two parts',
      [message(29, int32(1, 3)), message(29, int32(3, 4))],
      [message(29, int32(1, 3), int32(3, 4))],
    ],
    ['a left-out member of a oneof clears the others', [string(27, 'a'), string(30, 'n')], []],
    [
      'unknown fields of several numbers',
      [int32(99, 1), int32(98, 2), int32(99, 3)],
      [int32(98, 2), int32(99, 1), int32(99, 3)],
    ],
  ])('%s', (_, left, right) => {
    expect(hex(...left)).toBe(hex(...right));
  });

  it.each([
    ['int32', int32(1, 0)],
    ['int64', int64(2, 0n)],
    ['uint32', int32(3, 0)],
    ['uint64', int64(4, 0n)],
    ['sint32', int32(5, 0)],
    ['sint64', int64(6, 0n)],
    ['bool', int32(7, 0)],
    ['fixed32', raw(8, Bit32, 0, 0, 0, 0)],
    ['fixed64', raw(9, Bit64, 0, 0, 0, 0, 0, 0, 0, 0)],
    ['sfixed32', raw(10, Bit32, 0, 0, 0, 0)],
    ['sfixed64', raw(11, Bit64, 0, 0, 0, 0, 0, 0, 0, 0)],
    ['float', raw(12, Bit32, 0, 0, 0, 0)],
    ['double', raw(13, Bit64, 0, 0, 0, 0, 0, 0, 0, 0)],
    ['string', string(14, '')],
    ['bytes', string(15, '')],
    ['open enum', int32(16, 0)],
    ['zero at its longest', raw(1, Varint, 0x80, 0x80, 0x80, 0)],
    ['zero in the bits that an int32 keeps', raw(1, Varint, 0x80, 0x80, 0x80, 0x80, 0x10)],
  ])('an explicit default and none (case E1): %s', (_, field) => {
    expect(hex(field)).toBe('');
  });

  it.each([
    ['a negative int32 in 5 and in 10 bytes', raw(1, Varint, 0xff, 0xff, 0xff, 0xff, 0x0f), int32(1, -1)],
    ['a negative enum in 5 and in 10 bytes', raw(16, Varint, 0xff, 0xff, 0xff, 0xff, 0x0f), int32(16, -1)],
    ['a uint32 that is too long', raw(3, Varint, 0x85, 0x80, 0x80, 0x80, 0x10), int32(3, 5)],
    ['a sint32 that is too long', raw(5, Varint, 0x85, 0x80, 0x80, 0x80, 0x10), int32(5, 5)],
    ['an int64 with idle bytes', raw(2, Varint, 0x85, 0x80, 0), int64(2, 5n)],
    ['a uint64 with idle bytes', raw(4, Varint, 0x85, 0x80, 0), int64(4, 5n)],
    ['a sint64 with idle bytes', raw(6, Varint, 0x85, 0x80, 0), int64(6, 5n)],
    ['a true that is not 1', raw(7, Varint, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01), int32(7, 1)],
    ['two NaN of 32 bits', raw(12, Bit32, 1, 0, 0xc0, 0xff), raw(12, Bit32, 0, 0, 0xc0, 0x7f)],
    ['two NaN of 64 bits', raw(13, Bit64, 1, 0, 0, 0, 0, 0, 0xf8, 0xff), raw(13, Bit64, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)],
  ])('a number in two encodings: %s', (_, left, right) => {
    expect(hex(left)).toBe(hex(right));
    expect(hex(right)).toBe(Buffer.from(wire(right)).toString('hex'));
  });

  it.each([
    ['a string', string(33, 'one'), string(33, 'two')],
    ['inside a message', message(19, string(33, 'one')), message(19)],
    ['inside a list', message(22, string(33, 'one')), message(22)],
    ['inside a group', group(31, string(33, 'one')), group(31)],
    ['inside a map', message(25, int64(1, 1n), message(2, string(33, 'one'))), message(25, int64(1, 1n), message(2))],
    ['inside what a message contains', message(19, message(19, string(33, 'one'))), message(19, message(19))],
  ])('a field that is not in the fingerprint takes no part: %s', (_, left, right) => {
    expect(hex(left)).toBe(hex(right));
  });
});

describe('the form itself', () => {
  it('is a serialization of the message, in the order of the numbers, unknown fields among them', () => {
    const sorted = [
      int32(1, 3),
      raw(1, Bit32, 9, 9, 9, 9),
      raw(20, LengthDelimited, 2, 1, 2),
      group(32, int32(1, 1)),
      int32(99, 1),
    ];
    const bytes = Buffer.from(wire(...sorted)).toString('hex');
    expect(hex(...sorted)).toBe(bytes);
    expect(hex(...[...sorted].reverse())).toBe(bytes);
  });

  it('of an empty message is empty', () => {
    expect(hex()).toBe('');
  });

  it('leaves the bytes that it reads as they are', () => {
    const bytes = wire(message(19, int32(1, 3)), message(19, int32(1, 0)), entryOf('b'), entryOf('a'));
    const before = Buffer.from(bytes);
    canonicalForm(everything, bytes);
    expect(Buffer.from(bytes)).toEqual(before);
  });

  it('reads a view into a larger buffer, as the transport hands it over', () => {
    const bytes = wire(entryOf('a'), message(19, int32(1, 3)), raw(20, LengthDelimited, 2, 1, 2));
    const larger = Buffer.concat([Buffer.from([0xff, 0xff]), bytes, Buffer.from([0xff])]);
    const view = larger.subarray(2, larger.length - 1);
    expect(Buffer.from(canonicalForm(everything, view))).toEqual(Buffer.from(canonicalForm(everything, bytes)));
  });

  it('counts a field with a foreign option of the same number', () => {
    const set = compileProto(`
      syntax = "proto3";
      package t.v1;
      import "google/protobuf/descriptor.proto";
      extend google.protobuf.FieldOptions { bool foreign = 51872; }
      message M { string a = 1 [(t.v1.foreign) = true]; }`);
    const foreign = createFileRegistry(fromBinary(FileDescriptorSetSchema, set)).getMessage('t.v1.M');
    if (foreign === undefined) throw new Error('t.v1.M is missing');
    expect(canonicalForm(foreign, wire(string(1, 'a')))).not.toHaveLength(0);
  });

  function entryOf(key: string): Write {
    return message(24, string(1, key));
  }
});
