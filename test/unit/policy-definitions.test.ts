import {
  loadPolicies,
  type MethodPolicy,
  policiesFromGenericDefinitions,
  policiesFromPackageDefinition,
  type PolicyRegistry,
} from '../../src/idempotency/index';
import { descriptorSetOf, genericDefinitionsOf, packageDefinitionOf } from '../support/proto-forms';

/** Every spelling of the option, and every way to write its values. */
const SPELLINGS = `
  syntax = "proto3";
  package t.v1;
  import "idempotency/v1/policy.proto";
  message M {}
  service S {
    rpc Full(M) returns (M) {
      option (idempotency.v1.policy) = {
        key: KEY_REQUIREMENT_OPTIONAL, key_format: KEY_FORMAT_UUID_V7, lease: {seconds: 2}, max_execution: {seconds: 3},
        max_key_age: {seconds: 3600}, retention: {seconds: 7200, nanos: 1000000}, max_wait: {nanos: 5000000},
        max_response_bytes: 4096, recording: RECORDING_COMPACT, enforcement: ENFORCEMENT_OBSERVE, allow_detached: true,
        resume: true
      };
    }
    rpc Dot(M) returns (M) { option (.idempotency.v1.policy) = {lease: {seconds: 2}}; }
    rpc Parts(M) returns (M) {
      option idempotency_level = IDEMPOTENT;
      option (idempotency.v1.policy).key = KEY_REQUIREMENT_REQUIRED;
      option (.idempotency.v1.policy).lease.seconds = 5;
      option (.idempotency.v1.policy).lease.nanos = 7000000;
    }
    rpc Watch(M) returns (stream M) { option (idempotency.v1.policy) = {unprotected_stream: true}; }
    rpc Fill(stream M) returns (M) { option (idempotency.v1.policy) = {unprotected_stream: true}; }
    rpc Chat(stream M) returns (stream M) { option (idempotency.v1.policy) = {unprotected_stream: true}; }
    rpc Safe(M) returns (M) { option idempotency_level = NO_SIDE_EFFECTS; }
    rpc Plain(M) returns (M);
    rpc Bare(M) returns (M) {}
    rpc Deprecated(M) returns (M) { option deprecated = true; }
    rpc Spelt(M) returns (M) { option idempotency_level = IDEMPOTENCY_UNKNOWN; }
  }`;

/** Relative spellings, which hold where the packages share a beginning. */
const RELATIVE = `
  syntax = "proto3";
  package idempotency.v1.inner;
  import "idempotency/v1/policy.proto";
  message N {}
  service T {
    rpc Policy(N) returns (N) { option (policy) = {lease: {seconds: 3}}; }
    rpc V1(N) returns (N) { option (v1.policy) = {lease: {seconds: 4}}; }
    rpc Whole(N) returns (N) { option (idempotency.v1.policy).lease = {seconds: 5}; }
  }`;

/** An option of the same last name, of somebody else. */
const FOREIGN = `
  syntax = "proto3";
  package other.v1;
  import "google/protobuf/descriptor.proto";
  message P { bool unprotected_stream = 1; int32 whatever = 2; }
  extend google.protobuf.MethodOptions { optional P policy = 59999; }
  message O {}
  service U { rpc Plain(O) returns (O) { option (policy) = {unprotected_stream: true, whatever: 1}; } }`;

const SOURCES = {
  't/v1/spellings.proto': SPELLINGS,
  'idempotency/v1/inner/relative.proto': RELATIVE,
  'other/v1/foreign.proto': FOREIGN,
};
const set = descriptorSetOf(SOURCES);

/** All that is said of every method, in the order of the paths; of the types of the requests only the names. */
function told(registry: PolicyRegistry): readonly object[] {
  const sorted = registry.all().toSorted((left, right) => (left.path < right.path ? -1 : 1));
  return sorted.map((policy: MethodPolicy) => ({ ...policy, request: policy.request.typeName }));
}

const reference = told(loadPolicies(set));
const withoutTypes = (policies: readonly object[]) =>
  policies.map((policy) => ({ ...policy, request: undefined, requestKnown: undefined }));

it('our own protos and one with every spelling have the same policies from every source', () => {
  const [definition, generic] = [packageDefinitionOf(SOURCES), genericDefinitionsOf(SOURCES)];
  const requestTypes = set;
  expect(reference.map((policy) => (policy as MethodPolicy).path)).toEqual(
    expect.arrayContaining([
      '/t.v1.S/Full',
      '/idempotency.v1.inner.T/Policy',
      '/payments.v1.PaymentsService/GetPayment',
    ]),
  );
  expect(told(policiesFromPackageDefinition(definition, { requestTypes }))).toEqual(reference);
  expect(told(policiesFromGenericDefinitions(generic, { requestTypes }))).toEqual(reference);
  expect(withoutTypes(told(policiesFromPackageDefinition(definition)))).toEqual(withoutTypes(reference));
  expect(withoutTypes(told(policiesFromGenericDefinitions(generic)))).toEqual(withoutTypes(reference));
});
