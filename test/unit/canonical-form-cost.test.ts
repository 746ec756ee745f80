import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { canonicalForm, UnreadableRequestError } from '../../src/idempotency/canonical-form';
import { fingerprint } from '../../src/idempotency/fingerprint';
import { compileEverything } from '../support/everything-message';
import { group, int32, message, string, type Write, wire } from '../support/wire-fields';

const MOST_FIELDS = 100_000;
const everything = compileEverything();
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet));

function typeOf(name: string): NonNullable<ReturnType<typeof registry.getMessage>> {
  const found = registry.getMessage(name);
  if (found === undefined) throw new Error(`${name} is missing`);
  return found;
}

const createPayment = typeOf('payments.v1.CreatePaymentRequest');

function repeated(count: number, ...bytes: readonly number[]): Uint8Array {
  return Buffer.alloc(count * bytes.length, Uint8Array.from(bytes));
}

/** Entries of `metadata` with keys in no order. */
function distinctEntries(count: number): Uint8Array {
  const writer = new BinaryWriter();
  for (let index = 0; index < count; index++) message(5, string(1, `k${(index * 7919) % 1_000_003}`))(writer);
  return writer.finish();
}

function medianMs(run: () => unknown): number {
  const times = Array.from({ length: 3 }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return times.sort((left, right) => left - right)[1] ?? NaN;
}

describe('a request of 4 MiB made to keep the event loop busy', () => {
  const attacks: [string, Uint8Array][] = [
    ['empty map entries', repeated(2_000_000, 0x2a, 0)],
    ['map entries with distinct keys', distinctEntries(400_000)],
    ['unknown fields', repeated(2_000_000, 0x78, 1)],
  ];

  it.each(attacks)('%s: is refused', (_, bytes) => {
    expect(() => fingerprint(createPayment, bytes)).toThrow(UnreadableRequestError);
    expect(() => fingerprint(createPayment, bytes)).toThrow('more than 100000 fields');
  });

  it.each(attacks)('%s: is refused in less than 5 times what decoding it takes', (_, bytes) => {
    const refuse = (): void => expect(() => fingerprint(createPayment, bytes)).toThrow(UnreadableRequestError);
    expect(medianMs(refuse)).toBeLessThan(5 * medianMs(() => CreatePaymentRequest.decode(bytes)));
  });
});

describe('the most fields that are read', () => {
  const times = (count: number, field: Write): Write => {
    const one = wire(field);
    return (writer) => writer.raw(repeated(count, ...one));
  };

  it.each<[string, (count: number) => Write]>([
    ['unknown fields', (count) => times(count, int32(99, 1))],
    ['a field sent again and again', (count) => times(count, int32(1, 1))],
    ['map entries', (count) => times(count, message(24))],
    ['fields of a message', (count) => message(19, times(count - 1, int32(1, 1)))],
    ['messages in two parts', (count) => times(count / 2, message(19, int32(1, 1)))],
    ['fields of an unknown group', (count) => group(99, times(count - 2, int32(1, 1)))],
  ])('%s', (_, fields) => {
    expect(() => canonicalForm(everything, wire(fields(MOST_FIELDS)))).not.toThrow();
    expect(() => canonicalForm(everything, wire(fields(MOST_FIELDS), int32(1, 1)))).toThrow('more than 100000 fields');
  });

  it('counts what is in groups once for each group that is opened', () => {
    const nested = Array.from({ length: 50 }).reduce<Write>((inner) => group(31, inner), times(10_000, int32(1, 1)));
    expect(() => canonicalForm(everything, wire(nested))).toThrow('more than 100000 fields');
  });
});
