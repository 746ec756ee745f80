import { canonicalForm } from '../../src/idempotency/canonical-form';
import {
  loadPolicies,
  policiesFromGenericDefinitions,
  policiesFromPackageDefinition,
  type PolicyRegistry,
} from '../../src/idempotency/index';
import { assertServable } from '../../src/idempotency/policies/assert-servable';
import { policyFaults } from '../support/policy-faults';
import { descriptorSetOf, genericDefinitionsOf, packageDefinitionOf } from '../support/proto-forms';
import { group, int32, message, raw, string, wire } from '../support/wire-fields';

const SOURCES = {
  't/v1/types.proto': `
    syntax = "proto3";
    package t.v1;
    import "google/protobuf/timestamp.proto";
    import "idempotency/v1/policy.proto";
    import "other/v1/note.proto";
    message Item {
      string name = 1;
      map<string, int32> item = 2;
      map<int32, Item> parts = 3;
      repeated int32 sizes = 4;
      oneof choice { string text = 5; int32 number = 6; }
      message Inner { Colour colour = 1; Item item = 2; other.v1.Note note = 3; }
      Inner inner = 7;
      Colour colour = 8;
      google.protobuf.Timestamp at = 9;
      map<string, Colour> colours = 10;
      enum Colour { COLOUR_RED = 0; COLOUR_BLUE = 1; }
      message Entry2 {}
    }
    message Unpacked { repeated int32 sizes = 1 [packed = false]; }
    message Holder { repeated Unpacked unpacked = 1; }
    message Maybe { optional string text = 1; }
    message Nonce { string nonce = 1 [(idempotency.v1.not_in_fingerprint) = true]; }
    message Twice { message Item { string only_here = 1; } Item item = 1; }
    message Named { message Notes { string text = 1; } map<string, int32> notes = 1; repeated Notes list = 2; }
    message Plain {}
    service S {
      rpc Whole(Item) returns (Plain);
      rpc Capital(Named) returns (Plain);
      rpc Deep(Holder) returns (Plain);
      rpc Presence(Maybe) returns (Plain);
      rpc Option(Nonce) returns (Plain);
      rpc TwoNames(Twice) returns (Plain);
      rpc Safe(Nonce) returns (Plain) { option idempotency_level = NO_SIDE_EFFECTS; }
    }`,
  'other/v1/note.proto': 'syntax = "proto3"; package other.v1; message Note { string text = 1; }',
};
const OLD = {
  'old/v1/old.proto': `
    syntax = "proto2";
    package old.v1;
    message Old { optional int32 amount = 1 [deprecated = true]; optional group Part = 2 { optional int32 x = 3; } }
    service Older { rpc Grouped(Old) returns (Old); }`,
};
const set = descriptorSetOf(SOURCES);
const definition = packageDefinitionOf(SOURCES);
const reference = loadPolicies(set);
const defined = policiesFromPackageDefinition(definition);
const services = Object.values(definition).filter((entry) => 'Whole' in entry) as unknown as Parameters<
  typeof assertServable
>[1];

/** Two ways to write a request, and whether they mean the same. */
type Pair = readonly [string, Uint8Array, Uint8Array];

const SAME: readonly Pair[] = [
  ['map entries swapped', wire(entry(2, 'a', 1), entry(2, 'b', 2)), wire(entry(2, 'b', 2), entry(2, 'a', 1))],
  ['fields reversed', wire(string(1, 'pen'), int32(8, 1)), wire(int32(8, 1), string(1, 'pen'))],
  ['numbers packed and not', wire(raw(4, 2, 2, 1, 2)), wire(int32(4, 1), int32(4, 2))],
  [
    'a map within a map',
    wire(message(3, int32(1, 1), message(2, entry(2, 'a', 1), entry(2, 'b', 2)))),
    wire(message(3, int32(1, 1), message(2, entry(2, 'b', 2), entry(2, 'a', 1)))),
  ],
  [
    'a type of another package',
    wire(message(7, message(3, string(1, 'x')), int32(1, 1))),
    wire(message(7, int32(1, 1), message(3, string(1, 'x')))),
  ],
];

const DIFFERENT: readonly Pair[] = [
  ['another text', wire(string(1, 'pen')), wire(string(1, 'pencil'))],
  ['another order of a list', wire(raw(4, 2, 2, 1, 2)), wire(raw(4, 2, 2, 2, 1))],
  ['the other one of a choice', wire(string(5, 'a'), int32(6, 1)), wire(int32(6, 1), string(5, 'a'))],
  ['another unknown field', wire(int32(99, 1)), wire(int32(99, 2))],
];

function entry(number: number, key: string, value: number) {
  return message(number, string(1, key), int32(2, value));
}

function isSame(registry: PolicyRegistry, path: string, [, left, right]: Pair): boolean {
  const request = registry.get(path)?.request;
  if (request === undefined) throw new Error(`no ${path}`);
  return Buffer.from(canonicalForm(request, left)).equals(canonicalForm(request, right));
}

describe('the types of a definition of proto-loader', () => {
  it.each(SAME)('tell as the same: %s', (...pair) => {
    expect([reference, defined].map((registry) => isSame(registry, '/t.v1.S/Whole', pair))).toEqual([true, true]);
  });

  it.each(DIFFERENT)('tell as different: %s', (...pair) => {
    expect([reference, defined].map((registry) => isSame(registry, '/t.v1.S/Whole', pair))).toEqual([false, false]);
  });

  it('keep a map apart from a message that is called like it', () => {
    const swapped: Pair = ['', wire(entry(1, 'a', 1), entry(1, 'b', 2)), wire(entry(1, 'b', 2), entry(1, 'a', 1))];
    const list = (...texts: readonly string[]) => wire(...texts.map((text) => message(2, string(1, text))));
    expect(isSame(defined, '/t.v1.S/Capital', swapped)).toBe(true);
    expect(isSame(defined, '/t.v1.S/Capital', ['', list('a', 'b'), list('b', 'a')])).toBe(false);
  });

  it('do not tell presence, so all of it is compared', () => {
    const zero: Pair = ['', wire(int32(8, 0)), wire()];
    expect(isSame(reference, '/t.v1.S/Whole', zero)).toBe(true);
    expect(isSame(defined, '/t.v1.S/Whole', zero)).toBe(false);
  });

  it('are whole, options, groups and all, where no proto knows the options of this package', () => {
    const path = '/old.v1.Older/Grouped';
    const whole = policiesFromPackageDefinition(packageDefinitionOf(OLD, Object.keys(OLD)));
    expect(whole.get(path)).toMatchObject({ requestKnown: true, request: { typeName: 'old.v1.Old' } });
    const part = (...sizes: readonly number[]) => wire(...sizes.map((size) => group(2, int32(3, size))));
    // The second of two groups is merged into the first.
    const merged: Pair = ['', part(1, 2), part(2)];
    const zero: Pair = ['', wire(int32(1, 0)), wire()];
    for (const registry of [loadPolicies(descriptorSetOf(OLD)), whole]) {
      expect([merged, zero].map((pair) => isSame(registry, path, pair))).toEqual([true, false]);
    }
  });

  it('are not handed out where a field has options, or a name stands for two types; nor where such a one is inside', () => {
    const known = defined.all().map(({ path, requestKnown }) => [path, requestKnown]);
    expect(Object.fromEntries(known)).toMatchObject({
      '/t.v1.S/Whole': true,
      '/t.v1.S/Capital': true,
      '/t.v1.S/Deep': false,
      '/t.v1.S/Presence': false,
      '/t.v1.S/Option': false,
      '/t.v1.S/TwoNames': false,
      '/payments.v1.PaymentsService/CreatePayment': false,
      '/payments.v1.PaymentsService/RefundPayment': true,
    });
  });

  it('suffice for a server where they are whole; the others need requestTypes, and are named', () => {
    const expected =
      'expected the type of its request, which decides what is the same request: pass ' +
      '{ requestTypes: bytes }, a descriptor set of the same protos, where its policies are read';
    expect(policyFaults(() => assertServable(defined, services))).toEqual([
      `/t.v1.S/Deep: ${expected}`,
      `/t.v1.S/Presence: ${expected}`,
      `/t.v1.S/Option: ${expected}`,
      `/t.v1.S/TwoNames: ${expected}`,
    ]);
    const typed = policiesFromPackageDefinition(definition, { requestTypes: set });
    expect(policyFaults(() => assertServable(typed, services))).toEqual([]);
    expect(typed.get('/t.v1.S/Option')?.request).toMatchObject({ typeName: 't.v1.Nonce' });
  });
});

it('a generic definition has no types: a server needs requestTypes for every method that takes a key', () => {
  const definitions = genericDefinitionsOf(SOURCES);
  const generic = policiesFromGenericDefinitions(definitions);
  expect(policyFaults(() => assertServable(generic, services))).toHaveLength(6);
  const typed = policiesFromGenericDefinitions(definitions, { requestTypes: set });
  expect(policyFaults(() => assertServable(typed, services))).toEqual([]);
});
