import { createFileRegistry, type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { UnreadableRequestError } from '../../src/idempotency/canonical-form';
import { fingerprint, sameRequest } from '../../src/idempotency/fingerprint';

const createPayment = typeOf(descriptorSet, 'payments.v1.CreatePaymentRequest');

const request: CreatePaymentRequest = {
  orderId: 'order-1',
  amountMinor: 9007199254740993n,
  currency: 'TRY',
  paymentMethod: 'card-token',
  metadata: { b: '2', a: '1' },
  clientSentAt: { seconds: 1764500000n, nanos: 5 },
};

function typeOf(set: Uint8Array, name: string): DescMessage {
  const message = createFileRegistry(fromBinary(FileDescriptorSetSchema, set)).getMessage(name);
  if (message === undefined) throw new Error(`${name} is missing`);
  return message;
}

function encode(message: CreatePaymentRequest): Uint8Array {
  return CreatePaymentRequest.encode(message).finish();
}

function of(message: CreatePaymentRequest): Buffer {
  return fingerprint(createPayment, encode(message));
}

function withUnknown(number: number, value: number): Uint8Array {
  return new BinaryWriter().raw(encode(request)).tag(number, WireType.Varint).int32(value).finish();
}

describe('fingerprint', () => {
  // Fingerprints are kept in records. Whoever changes this one has to raise the version.
  it('of a given request never changes within a version', () => {
    expect(of(request).toString('hex')).toBe(
      [
        '01',
        '9c538a4760450b3134bcc72bcf9e5552eaee9c1e80fbc4ffbe3fbd7121a7ea08',
        '3d13401675c8dcce6e2411fceea826c97759a84407241cd05b9ff057dbddc4fc',
      ].join(''),
    );
  });

  it('of an empty request is that of no bytes', () => {
    const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
    expect(fingerprint(createPayment, new Uint8Array()).toString('hex')).toBe(`01${empty}${empty}`);
  });

  it('of bytes that are no such request does not exist', () => {
    expect(() => fingerprint(createPayment, Uint8Array.of(0x0a, 5, 0x61))).toThrow(UnreadableRequestError);
  });
});

describe('sameRequest', () => {
  it.each<[string, Partial<CreatePaymentRequest>]>([
    ['in nothing', {}],
    ['in the order of a map (case E1)', { metadata: { a: '1', b: '2' } }],
    ['in a field that is not in the fingerprint', { clientSentAt: { seconds: 1764500009n, nanos: 0 } }],
    ['in not having such a field', { clientSentAt: undefined }],
  ])('is the same when they differ %s', (_, change) => {
    expect(sameRequest(of(request), of({ ...request, ...change }))).toBe(true);
  });

  it.each<[string, Partial<CreatePaymentRequest>]>([
    ['an amount one apart above 2^53 (case E3)', { amountMinor: 9007199254740992n }],
    ['another order', { orderId: 'order-2' }],
    ['another currency', { currency: 'EUR' }],
    ['another card', { paymentMethod: 'other-token' }],
    ['another note', { metadata: { b: '2', a: '3' } }],
    ['one note less', { metadata: { b: '2' } }],
  ])('is another with %s', (_, change) => {
    expect(sameRequest(of(request), of({ ...request, ...change }))).toBe(false);
  });

  it('tells apart what this descriptor does not know (case E2)', () => {
    const [one, two] = [withUnknown(99, 1), withUnknown(99, 2)].map((bytes) => fingerprint(createPayment, bytes));
    expect(sameRequest(one ?? Buffer.of(), two ?? Buffer.of())).toBe(false);
    expect(sameRequest(of(request), one ?? Buffer.of())).toBe(false);
  });

  it('holds for the same bytes when a deploy changes what is known of them (case E2)', () => {
    const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
    const older = set.file
      .flatMap((file) => file.messageType)
      .filter(({ name }) => name === 'CreatePaymentRequest')
      .map((message) => (message.field = message.field.filter(({ name }) => name !== 'client_sent_at')));
    expect(older).toHaveLength(1);
    const before = typeOf(toBinary(FileDescriptorSetSchema, set), 'payments.v1.CreatePaymentRequest');
    const without = fingerprint(before, encode(request));
    expect(without.subarray(33)).not.toEqual(of(request).subarray(33));
    expect(sameRequest(without, of(request))).toBe(true);
  });

  it('is another for any two different amounts and the same for one', () => {
    const amount = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(amount, amount, (left, right) => {
        const [stored, presented] = [of({ ...request, amountMinor: left }), of({ ...request, amountMinor: right })];
        expect(sameRequest(stored, presented)).toBe(left === right);
        expect(sameRequest(stored, of({ ...request, amountMinor: left }))).toBe(true);
      }),
    );
  });
});

describe('sameRequest between versions', () => {
  const received = 1;
  const canonical = 33;

  /** The fingerprint of `request`, changed in one byte. */
  function changed(...positions: readonly number[]): Buffer {
    const bytes = of(request);
    for (const position of positions) bytes[position] = (bytes[position] ?? 0) ^ 1;
    return bytes;
  }

  it.each([
    ['the received bytes alone', changed(canonical), true],
    ['the canonical form alone', changed(received), true],
    ['the canonical form alone, up to its last byte', changed(received, 64), false],
    ['neither', changed(received, canonical), false],
    ['the received bytes, in another version', changed(0, canonical), true],
    ['the received bytes up to their last, in another version', changed(0, 32), false],
    ['the canonical form, in another version', changed(0, received), false],
  ])('compares %s', (_, stored, expected) => {
    expect(sameRequest(stored, of(request))).toBe(expected);
    expect(sameRequest(of(request), stored)).toBe(expected);
  });

  it.each([
    ['nothing', Buffer.of(), false],
    ['the version alone', of(request).subarray(0, 1), false],
    ['the first hash cut short', of(request).subarray(0, 32), false],
    ['the first hash', of(request).subarray(0, 33), true],
    ['another first hash and the second cut short', changed(received).subarray(0, 64), false],
  ])('takes %s for what it is', (_, stored, expected) => {
    expect(sameRequest(stored, of(request))).toBe(expected);
    expect(sameRequest(of(request), stored)).toBe(expected);
    expect(sameRequest(stored, stored)).toBe(stored.length >= canonical);
  });

  it('reads plain bytes, as the database gives them', () => {
    expect(sameRequest(new Uint8Array(of(request)), of(request))).toBe(true);
  });
});
