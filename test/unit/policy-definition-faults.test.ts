import { fromJSON, loadFileDescriptorSetFromBuffer, type PackageDefinition } from '@grpc/proto-loader';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { policiesFromGenericDefinitions, policiesFromPackageDefinition } from '../../src/idempotency/index';
import { compileProto } from '../support/compile-proto';
import { policyFaults } from '../support/policy-faults';
import { packageDefinitionOf } from '../support/proto-forms';

const faultsOf = (definition: object) =>
  policyFaults(() => policiesFromPackageDefinition(definition as PackageDefinition));

/** A definition as proto-loader makes it, of one method with options that it would not check. */
function definitionWith(parsedOptions: readonly object[], scope = ['t', 'v1']): PackageDefinition {
  const service = { methods: { Pay: { requestType: 'M', responseType: 'M', parsedOptions } } };
  const inner = { nested: { M: { fields: {} }, S: service } };
  return fromJSON(scope.reduceRight<object>((nested, name) => ({ nested: { [name]: nested } }), inner));
}

const policy = (value: unknown, spelling = '(idempotency.v1.policy)') => definitionWith([{ [spelling]: value }]);

describe('a definition of proto-loader that has lost its options is refused', () => {
  const lost = 'expected the options that its descriptor tells of';

  it('as it comes from a descriptor set: every method that had some is named, with the remedy', () => {
    const definition = loadFileDescriptorSetFromBuffer(Buffer.from(descriptorSet));
    const methods = ['CreatePayment', 'RefundPayment', 'GetPayment', 'ListPayments', 'CancelPayment', 'UpdatePayment'];
    const faults = faultsOf(definition);
    expect(faults).toEqual(
      expect.arrayContaining(methods.map((name) => `/payments.v1.PaymentsService/${name}: ${lost}`)),
    );
    expect(faults.filter((fault) => fault.startsWith('/payments.v1.'))).toHaveLength(methods.length);
    expect(() => policiesFromPackageDefinition(definition)).toThrow(
      /lost its options; make it with load or loadSync .*or pass the descriptor set .* to loadPolicies/,
    );
  });

  it.each([
    ['a deprecated one', 'rpc A(M) returns (M) { option deprecated = true; }', [`/t.v1.S/A: ${lost}`]],
    ['one with a custom option alone', 'rpc A(M) returns (M) { option (mine) = true; }', [`/t.v1.S/A: ${lost}`]],
    ['one that spells a default out', 'rpc A(M) returns (M) { option idempotency_level = IDEMPOTENCY_UNKNOWN; }', []],
  ])('with %s', (_, rpc, expected) => {
    const set = compileProto(`syntax = "proto3"; package t.v1; import "google/protobuf/descriptor.proto";
      extend google.protobuf.MethodOptions { optional bool mine = 59999; } message M {} service S { ${rpc} }`);
    expect(faultsOf(loadFileDescriptorSetFromBuffer(Buffer.from(set)))).toEqual(expected);
  });

  it('where only a field had one of this package', () => {
    const source = `syntax = "proto3"; package t.v1; import "idempotency/v1/policy.proto";
      message M { string a = 1 [(idempotency.v1.not_in_fingerprint) = true]; } service S { rpc A(M) returns (M); }`;
    expect(faultsOf(loadFileDescriptorSetFromBuffer(Buffer.from(compileProto(source))))).toEqual([
      'expected an option on some method or field, since the protos import those of this package',
    ]);
    const definition = packageDefinitionOf({ 't/v1/only.proto': source }, ['t/v1/only.proto']);
    expect(faultsOf(definition)).toEqual([]);
  });

  it('where the loader reads none at all', () => {
    const { S: service } = { S: (definitionWith([]) as Record<string, object>)['t.v1.S'] } as {
      S: Record<string, object>;
    };
    const { Pay } = service as { Pay: object };
    expect(faultsOf({ 't.v1.S': { Pay: { ...Pay, options: undefined } } })).toEqual([`/t.v1.S/Pay: ${lost}`]);
  });
});

describe('what proto-loader lets pass', () => {
  it.each<[string, unknown, string]>([
    [
      'a misspelt setting',
      { leese: { seconds: 1 } },
      'leese: expected a setting that this version knows; got {"seconds":1}',
    ],
    ['what every object has', { toString: 1 }, 'toString: expected a setting that this version knows; got 1'],
    ['a misspelt value', { key: 'REQUIRED' }, 'key: expected a value that this version knows; got "REQUIRED"'],
    ['a number that is no value', { recording: 9 }, 'recording: expected a value that this version knows; got 9'],
    [
      'half a second',
      { lease: { seconds: 0.5 } },
      'lease: expected a duration of whole seconds and nanos; got {"seconds":0.5}',
    ],
    [
      'a misspelt unit',
      { lease: { second: 1 } },
      'lease: expected a duration of whole seconds and nanos; got {"second":1}',
    ],
    ['a text for a duration', { max_wait: '1s' }, 'max_wait: expected a duration of whole seconds and nanos; got "1s"'],
    ['a text for a number', { max_response_bytes: '1' }, 'max_response_bytes: expected a whole number; got "1"'],
    ['a negative number', { max_response_bytes: -1 }, 'max_response_bytes: expected a whole number; got -1'],
    ['a text for a flag', { allow_detached: 'yes' }, 'allow_detached: expected true or false; got "yes"'],
    ['something else than a message', 5, 'the option: expected a message; got 5'],
    // 9007199254740993 in the proto: what is not exact any more is too long in any case.
    [
      'a number that is not exact',
      { lease: { seconds: 9007199254740992 } },
      'lease: expected at most 2147483647 ms; got 9007199254740992000 ms',
    ],
  ])('is refused by name: %s', (_, value, fault) => {
    expect(faultsOf(policy(value))).toEqual([`/t.v1.S/Pay: ${fault}`]);
  });

  it('is refused where a level is misspelt, and where what is known does not fit', () => {
    const definition = definitionWith([
      { idempotency_level: 'IDEMPOTANT' },
      { '(idempotency.v1.policy)': { lease: { seconds: 0 } } },
    ]);
    expect(faultsOf(definition)).toEqual([
      '/t.v1.S/Pay: idempotency_level: expected NO_SIDE_EFFECTS, IDEMPOTENT or IDEMPOTENCY_UNKNOWN; got IDEMPOTANT',
      '/t.v1.S/Pay: lease: expected a positive duration in whole milliseconds; got 0 ms',
    ]);
  });
});

it.each<[string, string[], boolean]>([
  ['(idempotency.v1.policy)', ['t', 'v1'], true],
  ['(.idempotency.v1.policy)', ['t', 'v1'], true],
  ['( idempotency.v1.policy )', ['t', 'v1'], true],
  ['(policy)', ['idempotency', 'v1'], true],
  ['(policy)', ['idempotency', 'v1', 'inner'], true],
  ['(v1.policy)', ['idempotency', 'v2'], true],
  ['(policy)', ['t', 'v1'], false],
  ['(v1.policy)', ['t', 'v1'], false],
  ['(policy)', ['idempotency', 'v10'], false],
  ['(police)', ['idempotency', 'v1'], false],
  ['(.policy)', ['idempotency', 'v1'], false],
  ['idempotency.v1.policy', ['t', 'v1'], false],
  ['(other.v1.policy)', ['t', 'v1'], false],
  ['(t.idempotency.v1.policy)', ['t', 'v1'], false],
])('the spelling %s in package %j is that of our option: %s', (spelling, scope, isOurs) => {
  const policies = policiesFromPackageDefinition(definitionWith([{ [spelling]: { lease: { seconds: 2 } } }], scope));
  expect(policies.get(`/${scope.join('.')}.S/Pay`)?.leaseMs).toBe(isOurs ? 2_000 : 30_000);
});

describe('a generic definition', () => {
  const method = { name: 'Pay', requestStream: false, responseStream: false };
  const generic = (options: object) => [{ fullName: 't.v1.S', methods: { pay: { ...method, options } } }];

  it('of an older generator, without options, is refused', () => {
    const old = [{ fullName: 't.v1.S', methods: { pay: method } }] as unknown as ReturnType<typeof generic>;
    expect(policyFaults(() => policiesFromGenericDefinitions(old))).toEqual(['/t.v1.S/Pay: expected options']);
  });

  it('with several parts of one option has them all', () => {
    const options = { _unknownFields: { 414970: [Buffer.of(2, 8, 2), Buffer.of(4, 26, 2, 8, 5)] } };
    const policies = policiesFromGenericDefinitions(generic(options));
    expect(policies.get('/t.v1.S/Pay')).toMatchObject({ key: 'OPTIONAL', leaseMs: 5_000 });
  });

  it('is refused where it says what this version does not know, or something that does not fit', () => {
    const faults = (options: object) => policyFaults(() => policiesFromGenericDefinitions(generic(options)));
    expect(faults({ _unknownFields: { 414970: [Buffer.of(2, 14 << 3, 1)] } })).toEqual([
      '/t.v1.S/Pay: field 14: expected a setting that this version knows',
    ]);
    expect(faults({ idempotencyLevel: 'SOMETIMES' })).toEqual([
      '/t.v1.S/Pay: idempotency_level: expected NO_SIDE_EFFECTS, IDEMPOTENT or IDEMPOTENCY_UNKNOWN; got SOMETIMES',
    ]);
  });
});

it('requestTypes of other protos are refused, with every difference', () => {
  const requestTypes = compileProto(`syntax = "proto3"; package t.v1; message M {} service S {
    rpc Pay(stream M) returns (M) { option idempotency_level = IDEMPOTENT; } }`);
  const faults = (definition: PackageDefinition) =>
    policyFaults(() => policiesFromPackageDefinition(definition, { requestTypes }));
  expect(faults(policy({ lease: { seconds: 1 } }))).toEqual([
    '/t.v1.S/Pay: level: UNKNOWN, and IDEMPOTENT there',
    '/t.v1.S/Pay: key: REQUIRED, and IGNORED there',
    '/t.v1.S/Pay: leaseMs: 1000, and 30000 there',
    '/t.v1.S/Pay: maxExecutionMs: 10000, and 300000 there',
    '/t.v1.S/Pay: clientStreaming: false, and true there',
  ]);
  expect(faults(definitionWith([], ['t', 'v2']))).toEqual(['/t.v2.S/Pay: expected in requestTypes']);
});
