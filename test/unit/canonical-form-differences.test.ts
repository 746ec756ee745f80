import { WireType } from '@bufbuild/protobuf/wire';
import { canonicalForm } from '../../src/idempotency/canonical-form';
import { compileEverything } from '../support/everything-message';
import { both, group, int32, int64, message, nothing, raw, string, wire, type Write } from '../support/wire-fields';

const everything = compileEverything();
const { Bit64, LengthDelimited, Bit32 } = WireType;

function hex(...fields: readonly Write[]): string {
  return Buffer.from(canonicalForm(everything, wire(...fields))).toString('hex');
}

describe('two messages have two forms', () => {
  it.each<[string, Write, Write]>([
    ['neighbours above 2^53 (case E3)', int64(2, 9007199254740993n), int64(2, 9007199254740992n)],
    ['the ends of int64', int64(2, 2n ** 63n - 1n), int64(2, -(2n ** 63n))],
    ['neighbours below 2^64', int64(4, -1n), int64(4, -2n)],
    ['repeated numbers in another order', raw(20, LengthDelimited, 2, 1, 2), raw(20, LengthDelimited, 2, 2, 1)],
    ['repeated zeros, counted', raw(20, LengthDelimited, 1, 0), raw(20, LengthDelimited, 2, 0, 0)],
    [
      'repeated strings in another order',
      both(string(21, 'a'), string(21, 'b')),
      both(string(21, 'b'), string(21, 'a')),
    ],
    [
      'repeated strings, cut elsewhere',
      both(string(21, 'ab'), string(21, 'c')),
      both(string(21, 'a'), string(21, 'bc')),
    ],
    ['an empty repeated string and none', string(21, ''), nothing],
    [
      'two messages and one in two parts',
      both(message(22, int32(1, 3)), message(22, int32(3, 4))),
      message(22, int32(1, 3), int32(3, 4)),
    ],
    ['an empty string with presence and none', string(17, ''), nothing],
    ['a zero with presence and none', int32(18, 0), nothing],
    ['an empty message and none', message(19), nothing],
    ['an empty group and none', group(31), nothing],
    ['a default in a oneof and none', int32(28, 0), nothing],
    ['two members of a oneof', string(27, ''), int32(28, 0)],
    ['−0 and 0 of 32 bits', raw(12, Bit32, 0, 0, 0, 0x80), nothing],
    ['−0 and 0 of 64 bits', raw(13, Bit64, 0, 0, 0, 0, 0, 0, 0, 0x80), nothing],
    [
      'strings that no UTF-8 reader can tell apart',
      raw(14, LengthDelimited, 1, 0xff),
      raw(14, LengthDelimited, 1, 0xfe),
    ],
    ['a field of the message and of its child', string(14, 'a'), message(19, string(14, 'a'))],
    [
      'map entries whose keys and values could be cut elsewhere',
      message(24, string(1, 'a'), string(2, 'bc')),
      message(24, string(1, 'ab'), string(2, 'c')),
    ],
    [
      'map entries with their values exchanged',
      both(entryOf('a', '1'), entryOf('b', '2')),
      both(entryOf('a', '2'), entryOf('b', '1')),
    ],
    ['an empty map entry and none', message(24), nothing],
    ['unknown fields 1 and 2 (case E2)', int32(99, 1), int32(99, 2)],
    ['an unknown field and none', int32(99, 0), nothing],
    [
      'unknown fields of one number in another order',
      both(int32(99, 1), int32(99, 2)),
      both(int32(99, 2), int32(99, 1)),
    ],
    ['an unknown field inside a message', message(19, int32(99, 1)), message(19, int32(99, 2))],
    ['an unknown field inside a map entry', message(24, string(1, 'a'), int32(3, 1)), message(24, string(1, 'a'))],
    ['an unknown field of the message and of its child', int32(99, 1), message(19, int32(99, 1))],
    ['unknown groups', group(99, int32(1, 3)), group(99, int32(1, 4))],
    ['a wire type that does not fit, and the number that it would be', raw(1, Bit32, 3, 0, 0, 0), int32(1, 3)],
    ['a wire type that does not fit a left-out field', int32(33, 1), nothing],
    ['a string where a closed enum should be', raw(34, LengthDelimited, 1, 1), int32(34, 1)],
    ['a length where a group should be', message(31, int32(1, 3)), group(31, int32(1, 3))],
    [
      'what a reader of a closed enum makes of a number that it does not know',
      both(int32(34, 1), int32(34, 9)),
      int32(34, 9),
    ],
    ['the same in a oneof', both(string(27, 'a'), int32(39, 9)), int32(39, 9)],
    ['the same in a map', both(message(36, int32(2, 1)), message(36, int32(2, 9))), message(36, int32(2, 9))],
  ])('%s', (_, left, right) => {
    expect(hex(left)).not.toBe(hex(right));
  });

  it('a wire type that does not fit displaces nothing', () => {
    expect(hex(string(27, 'a'), string(28, 'b'))).toBe(`${hex(string(27, 'a'))}${hex(string(28, 'b'))}`);
  });

  function entryOf(key: string, value: string): Write {
    return message(24, string(1, key), string(2, value));
  }
});
