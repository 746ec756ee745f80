import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { loadPolicies } from '../../src/idempotency/index';
import { compileProto } from '../support/compile-proto';
import { policyFaults } from '../support/policy-faults';

const PAYMENTS = 'payments/v1/payments.proto';

/** The protos of this package, changed as something on their way would. */
function spoilt(spoil: (files: FileDescriptorProto[]) => FileDescriptorProto[] | void): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  set.file = spoil(set.file) ?? set.file;
  return toBinary(FileDescriptorSetSchema, set);
}

/** What is said of the payments; other protos of the set may have lost theirs too. */
const paymentFaults = (set: Uint8Array): string[] =>
  policyFaults(() => loadPolicies(set)).filter((fault) => fault.startsWith(PAYMENTS));

const methodsOf = (files: readonly FileDescriptorProto[]) =>
  files.flatMap(({ service }) => service).flatMap(({ method }) => method);
const fieldsOf = (files: readonly FileDescriptorProto[]) =>
  files.flatMap(({ messageType }) => messageType).flatMap(({ field }) => field);

/** What a library without extensions leaves of the options: an empty message, or what it knows of them. */
function forgetUnknownOptions(files: readonly FileDescriptorProto[]): void {
  for (const { options } of [...methodsOf(files), ...fieldsOf(files)]) if (options) delete options.$unknown;
}

const EMPTY = 'expected options where an empty message stands for them';

const UNUSED =
  `${PAYMENTS}: expected a method with (idempotency.v1.policy) or a field with (idempotency.v1.not_in_fingerprint), ` +
  'since it imports idempotency/v1/policy.proto';

describe('a descriptor set', () => {
  it('that was encoded anew without what the library does not know is refused, with the places and the remedy', () => {
    const set = spoilt(forgetUnknownOptions);
    expect(paymentFaults(set)).toEqual([
      `${PAYMENTS}: payments.v1.CreatePaymentRequest.client_sent_at: ${EMPTY}`,
      UNUSED,
    ]);
    expect(() => loadPolicies(set)).toThrow(/lost options; make one with `buf build .*protoc --include_imports/);
  });

  it('that lost only the option of a field is refused, even where the field is of a nested message', () => {
    const nested = compileProto(`
      syntax = "proto3"; package t.v1; import "idempotency/v1/policy.proto";
      message M { message Inner { string nonce = 1 [(idempotency.v1.not_in_fingerprint) = true]; } Inner inner = 1; }
      service S { rpc Plain(M) returns (M) { option (idempotency.v1.policy) = {lease: {seconds: 1}}; } }`);
    const set = fromBinary(FileDescriptorSetSchema, nested);
    for (const { nestedType } of set.file.flatMap(({ messageType }) => messageType)) {
      for (const { options } of nestedType.flatMap(({ field }) => field)) if (options) delete options.$unknown;
    }
    expect(policyFaults(() => loadPolicies(toBinary(FileDescriptorSetSchema, set)))).toEqual([
      `test.proto: t.v1.M.Inner.nonce: ${EMPTY}`,
    ]);
  });

  it('without a trace of its options is recognised by the import that only they need', () => {
    const set = spoilt((files) => {
      for (const place of [...methodsOf(files), ...fieldsOf(files)]) delete place.options;
    });
    expect(paymentFaults(set)).toEqual([UNUSED]);
  });

  it.each([
    ['has one option of the two', 'message M { string a = 1 [(idempotency.v1.not_in_fingerprint) = true]; }'],
    ['imports the file for its types', 'message M { idempotency.v1.Policy policy = 1; }'],
  ])('is not suspected where it %s', (_, message) => {
    const set = compileProto(`syntax = "proto3"; package t.v1; import "idempotency/v1/policy.proto"; ${message}
      service S { rpc Plain(M) returns (M) {} }`);
    expect(loadPolicies(set).get('/t.v1.S/Plain')?.key).toBe('REQUIRED');
  });

  it('is not suspected where a file hands the options on', () => {
    const set = compileProto(`syntax = "proto3"; package t.v1; import public "idempotency/v1/policy.proto"; message M {}
      service S { rpc Plain(M) returns (M); }`);
    expect(loadPolicies(set).get('/t.v1.S/Plain')?.key).toBe('REQUIRED');
  });

  it.each<[string, Uint8Array, RegExp]>([
    ['no set at all', Buffer.from('syntax = "proto3";'), /illegal tag|cant skip|invalid/],
    ['empty', new Uint8Array(0), /it holds no file/],
    [
      'without its imports',
      spoilt((files) => files.filter(({ name }) => !name.endsWith('policy.proto'))),
      /Cannot find idempotency\/v1\/policy.proto/,
    ],
  ])('that is %s is refused with the reason and the remedy', (_, bytes, reason) => {
    expect(policyFaults(() => loadPolicies(bytes))).toEqual([expect.stringMatching(reason)]);
    expect(() => loadPolicies(bytes)).toThrow(/not a descriptor set with all its imports; make one with `buf build/);
  });
});
