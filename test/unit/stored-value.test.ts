import * as fc from 'fast-check';
import { decodeValue, encodeValue, UnstorableValueError } from '../../src/idempotency/server/steps/stored-value';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';

const roundTrip = (value: unknown): unknown => decodeValue(encodeValue(value, 'charge'));

const leaf = fc.oneof(
  fc.constant(undefined),
  fc.constant(null),
  fc.boolean(),
  fc.double(),
  fc.integer(),
  fc.string({ unit: 'binary' }),
  fc.bigInt(),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  fc.date({ noInvalidDate: true }),
);
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('value')),
    fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__'), fc.constant('array')), tie('value')),
  ),
})).value;

describe('the results of phases and effects (design 4.10)', () => {
  it('are read as what was written', () => {
    fc.assert(
      fc.property(value, (written) => {
        const read = roundTrip(written);
        expect(read).toEqual(written);
        // toEqual is lenient about undefined fields and about what -0 is.
        expect(encodeValue(read, 'charge')).toBe(encodeValue(written, 'charge'));
      }),
    );
  });

  it.each([
    ['2^63', 2n ** 63n],
    ['NaN', NaN],
    ['-0', -0],
    ['-Infinity', -Infinity],
    ['half a surrogate pair', '\ud800'],
    ['a field that is undefined', { value: undefined }],
    ['what looks like a tag', ['bigint', '1']],
    ['an object with a field like a tag', { 0: 'bigint', 1: '1' }],
    ['bytes', Buffer.from([0, 255])],
  ])('%s', (_, written) => {
    expect(
      Object.is(roundTrip(written), written) ||
        JSON.stringify([roundTrip(written)], spell) === JSON.stringify([written], spell),
    ).toBe(true);
  });

  it('a message of generated code keeps its exact numbers', () => {
    const message = CreatePaymentRequest.fromPartial({ amountMinor: 2n ** 53n + 1n, metadata: { a: '1' } });
    expect(roundTrip(message)).toEqual(message);
  });

  class Money {
    readonly amount = 1;
  }
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;

  it.each([
    ['charge: a function', () => 1],
    ['charge.items[1]: a symbol', { items: [1, Symbol('x')] }],
    ['charge.price: an object of class Money', { price: new Money() }],
    ['charge: an object of class Map', new Map()],
    ['charge.at: an invalid date', { at: new Date(NaN) }],
    ['charge.self: an object that holds itself', circular],
    ['charge: an object with symbols as keys', { [Symbol('x')]: 1 }],
  ])("%s can't be stored, and what is thrown says where", (told, unstorable) => {
    expect(() => encodeValue(unstorable, 'charge')).toThrow(UnstorableValueError);
    expect(() => encodeValue(unstorable, 'charge')).toThrow(`${told} can't be stored`);
  });

  it('may hold the same object twice, which is not a circle', () => {
    const shared = { a: 1 };
    expect(roundTrip([shared, shared])).toEqual([shared, shared]);
  });
});

/** JSON with everything that JSON loses spelled out. */
function spell(_: string, one: unknown): unknown {
  if (one === undefined) return 'undefined';
  if (typeof one === 'bigint') return `${one}n`;
  return typeof one === 'number' && !Number.isFinite(one) ? String(one) : one;
}
