import { createRegistry, equals, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { canonicalForm } from '../../src/idempotency/canonical-form';
import { compileEverything } from '../support/everything-message';

const everything = compileEverything();
const { Varint, Bit64, LengthDelimited, StartGroup, EndGroup, Bit32 } = WireType;

/** One field on the wire. Two of different `place` may change places without a change of meaning. */
interface Piece {
  readonly place: string;
  readonly bytes: Uint8Array;
}

type Pieces = fc.Arbitrary<Piece>;

/** Few values, so that equal messages and displaced values come up often. −0, NaN and closed enums have tests of their own. */
const small = fc.constantFrom(0, 1, 2, 300, 0x7fffffff);
const signed = fc.oneof(small, fc.constantFrom(-1, -2147483648));
const long = fc.constantFrom(0n, 1n, -1n, 9007199254740992n, 9007199254740993n, 2n ** 63n - 1n, -(2n ** 63n));
const word = fc.constantFrom('', 'a', 'b', 'ab', 'ş');

function piece<T>(
  number: number,
  type: WireType,
  value: fc.Arbitrary<T>,
  write: (writer: BinaryWriter, value: T) => unknown,
): Pieces {
  return value.map((drawn) => {
    const writer = new BinaryWriter().tag(number, type);
    write(writer, drawn);
    return { place: String(number), bytes: writer.finish() };
  });
}

function inOneof(pieces: Pieces): Pieces {
  return pieces.map(({ bytes }) => ({ place: 'oneof', bytes }));
}

const int32 = (number: number): Pieces => piece(number, Varint, signed, (writer, value) => writer.int32(value));
const int64 = (number: number): Pieces => piece(number, Varint, long, (writer, value) => writer.int64(value));
const string = (number: number): Pieces =>
  piece(number, LengthDelimited, word, (writer, value) => writer.string(value));
const fixed32 = (number: number): Pieces => piece(number, Bit32, small, (writer, value) => writer.fixed32(value));
const float = (number: number): Pieces => piece(number, Bit32, small, (writer, value) => writer.float(value % 512));
const double = (number: number): Pieces => piece(number, Bit64, signed, (writer, value) => writer.double(value));
const fixed64 = (number: number): Pieces => piece(number, Bit64, long, (writer, value) => writer.sfixed64(value));

const { pieces } = fc.letrec<{ pieces: Piece[] }>((tie) => {
  const body = tie('pieces').map((drawn) => concatenate(drawn));
  const message = (number: number): Pieces =>
    piece(number, LengthDelimited, body, (writer, value) => writer.bytes(value));
  const group = (number: number): Pieces =>
    piece(number, StartGroup, body, (writer, value) => writer.raw(value).tag(number, EndGroup));
  const packed = piece(20, LengthDelimited, fc.array(signed, { maxLength: 3 }), (writer, values) => {
    writer.fork();
    for (const value of values) writer.int32(value);
    writer.join();
  });
  const entry = (number: number, key: Pieces, value: Pieces): Pieces =>
    fc.tuple(fc.option(key), fc.option(value), fc.boolean()).map(([drawnKey, drawnValue, keyFirst]) => {
      const parts = [drawnKey, drawnValue].filter((part) => part !== null);
      const bytes = concatenate(keyFirst ? parts : parts.reverse());
      // An absent key is the default one, whose only byte after the tag is 0.
      return { place: `${number} ${String(drawnKey?.bytes.subarray(1) ?? 0)}`, bytes: entryBytes(number, bytes) };
    });
  const known = fc.oneof(
    ...[int32(1), int64(2), int32(3), int64(4), int32(5), int64(6), int32(7), fixed32(8), fixed64(9), fixed32(10)],
    ...[fixed64(11), float(12), double(13), string(14), string(15), int32(16), string(17), int32(18), message(19)],
    ...[int32(20), packed, string(21), message(22), double(23), group(31), group(32), string(33)],
    ...[entry(24, string(1), string(2)), entry(25, int64(1), message(2)), entry(26, bool(1), int32(2))],
    ...[string(27), int32(28), message(29), string(30)].map(inOneof),
  );
  const unknown = fc.oneof(int32(98), string(99), group(100));
  return {
    pieces: fc.array(fc.oneof({ weight: 9, arbitrary: known }, unknown), { maxLength: 6, depthIdentifier: 'message' }),
  };
});

function bool(number: number): Pieces {
  return piece(number, Varint, fc.boolean(), (writer, value) => writer.bool(value));
}

function entryBytes(number: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, LengthDelimited).bytes(bytes).finish();
}

function concatenate(parts: readonly Piece[]): Uint8Array {
  return Buffer.concat(parts.map(({ bytes }) => bytes));
}

function canonical(bytes: Uint8Array): Buffer {
  return Buffer.from(canonicalForm(everything, bytes));
}

/** What another implementation reads, without the fields that take no part and with unknown fields by number. */
function decoded(bytes: Uint8Array): Message {
  const message = fromBinary(everything, bytes);
  settle(reflect(everything, message));
  return message;
}

function settle(message: ReflectMessage): void {
  const unknown = message.getUnknown();
  if (unknown !== undefined) message.setUnknown(unknown.toSorted((left, right) => left.no - right.no));
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.name === 'nonce' || field.name === 'chosen_nonce') message.clear(field);
    else if (field.fieldKind === 'message') settle(message.get(field));
    else if (field.fieldKind === 'list' && field.listKind === 'message') [...message.get(field)].forEach(settleItem);
    else if (field.fieldKind === 'map' && field.mapKind === 'message')
      [...message.get(field).values()].forEach(settleItem);
  }
}

function settleItem(item: unknown): void {
  settle(item as ReflectMessage);
}

function same(left: Uint8Array, right: Uint8Array): boolean {
  return equals(everything, decoded(left), decoded(right), { registry: createRegistry(), unknown: true });
}

describe('the canonical form, judged by another implementation of protobuf', () => {
  it('is a serialization of the same message', () => {
    fc.assert(
      fc.property(pieces, (drawn) => same(canonical(concatenate(drawn)), concatenate(drawn))),
      { numRuns: 300 },
    );
  });

  it('is its own form', () => {
    fc.assert(
      fc.property(pieces, (drawn) => {
        const form = canonical(concatenate(drawn));
        expect(canonical(form)).toEqual(form);
      }),
    );
  });

  it('is that of the message written by the other implementation', () => {
    fc.assert(
      fc.property(pieces, (drawn) => {
        const bytes = concatenate(drawn);
        expect(canonical(toBinary(everything, fromBinary(everything, bytes)))).toEqual(canonical(bytes));
      }),
      { numRuns: 300 },
    );
  });

  it('stays when fields and map entries change places', () => {
    const shuffled = pieces.chain((drawn) =>
      fc.tuple(fc.constant(drawn), fc.shuffledSubarray(drawn, { minLength: drawn.length })),
    );
    fc.assert(
      fc.property(shuffled, ([drawn, order]) => {
        // Fields of one place keep their order among themselves.
        const left = [...drawn];
        const moved = order.flatMap(({ place }) => {
          const next = left.findIndex((part) => part.place === place);
          return left.splice(next, 1);
        });
        expect(canonical(concatenate(moved))).toEqual(canonical(concatenate(drawn)));
      }),
      { numRuns: 300 },
    );
  });

  it('is equal for two messages exactly when they are equal', () => {
    const pairs = pieces.chain((drawn) => {
      const changed = fc
        .tuple(fc.nat({ max: drawn.length }), fc.nat({ max: 1 }), pieces)
        .map(([at, removed, others]) => {
          return drawn.toSpliced(at, removed, ...others.slice(0, 1));
        });
      return fc.tuple(fc.constant(drawn), changed);
    });
    fc.assert(
      fc.property(pairs, ([drawn, changed]) => {
        const [left, right] = [concatenate(drawn), concatenate(changed)];
        expect(canonical(left).equals(canonical(right))).toBe(same(left, right));
      }),
      { numRuns: 500 },
    );
  });
});
