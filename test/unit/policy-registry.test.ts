import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel as ProtoLevel,
  MethodOptionsSchema,
} from '@bufbuild/protobuf/wkt';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import type { MethodPolicy } from '../../src/idempotency/policy';
import { assertServable } from '../../src/idempotency/policies/assert-servable';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import { compileProto } from '../support/compile-proto';
import { policyFaults } from '../support/policy-faults';
import { levelOf, policyOf, serviceWith } from '../support/service-proto';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

describe('the policies of our own protos', () => {
  const registry = loadPolicies(descriptorSet);
  const path = (method: string): string => `/payments.v1.PaymentsService/${method}`;

  it('say what the contract says', () => {
    const told = registry.all().map(({ method, level, key }) => `${method} ${level} ${key}`);
    expect(told).toEqual([
      'Authorize UNKNOWN REQUIRED',
      'Refund UNKNOWN REQUIRED',
      'GetAuthorization NO_SIDE_EFFECTS IGNORED',
      'ListAuthorizations NO_SIDE_EFFECTS IGNORED',
      'GetRequest NO_SIDE_EFFECTS IGNORED',
      'CreatePayment UNKNOWN REQUIRED',
      'RefundPayment UNKNOWN REQUIRED',
      'GetPayment NO_SIDE_EFFECTS IGNORED',
      'ListPayments NO_SIDE_EFFECTS IGNORED',
      'CancelPayment IDEMPOTENT IGNORED',
      'UpdatePayment IDEMPOTENT OPTIONAL',
      'SendReceipt UNKNOWN REQUIRED',
    ]);
  });

  it('have the documented defaults where the proto says nothing', () => {
    const policy = registry.get(path('CreatePayment'));
    expect(policy?.request.typeName).toBe('payments.v1.CreatePaymentRequest');
    expect({ ...policy, request: undefined }).toEqual({
      path: path('CreatePayment'),
      service: 'payments.v1.PaymentsService',
      method: 'CreatePayment',
      level: 'UNKNOWN',
      key: 'REQUIRED',
      keyFormat: 'UUID',
      leaseMs: 30_000,
      maxExecutionMs: 300_000,
      maxKeyAgeMs: day,
      retentionMs: 7 * day,
      maxWaitMs: 0,
      maxResponseBytes: 262_144,
      recording: 'FULL',
      enforcement: 'ENFORCE',
      // Said there.
      resume: true,
      allowDetached: false,
      unprotectedStream: false,
      clientStreaming: false,
      serverStreaming: false,
      request: undefined,
      requestKnown: true,
    });
    expect(registry.get(path('GetPayment'))).toMatchObject({ retentionMs: 3 * day, resume: false });
  });

  it('are found by the path on the wire and by nothing else', () => {
    expect(registry.get(path('CreatePayment'))?.path).toBe(PaymentsServiceService.createPayment.path);
    expect(registry.get('payments.v1.PaymentsService/CreatePayment')).toBeUndefined();
    expect(registry.get('constructor')).toBeUndefined();
  });

  it('let the whole service be served', () => {
    expect(() => assertServable(registry, [PaymentsServiceService])).not.toThrow();
  });

  it('follow the level alone: changing nothing else changes what is required', () => {
    const changed = withLevels({ Authorize: ProtoLevel.IDEMPOTENT, GetPayment: ProtoLevel.IDEMPOTENCY_UNKNOWN });
    const paths = ['/cardnetwork.v1.CardNetworkService/Authorize', path('GetPayment')];
    const told = paths.map((changedPath) => changed.get(changedPath));
    expect(told.map((policy) => [policy?.level, policy?.key])).toEqual([
      ['IDEMPOTENT', 'IGNORED'],
      ['UNKNOWN', 'REQUIRED'],
    ]);
  });

  function withLevels(levels: Readonly<Record<string, ProtoLevel>>): ReturnType<typeof loadPolicies> {
    const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
    for (const method of set.file.flatMap((file) => file.service).flatMap((service) => service.method)) {
      const level = levels[method.name];
      if (level === undefined) continue;
      method.options ??= create(MethodOptionsSchema);
      method.options.idempotencyLevel = level;
    }
    return loadPolicies(toBinary(FileDescriptorSetSchema, set));
  }
});

describe('a policy option', () => {
  it('adds to what the level decides', () => {
    const registry = loadPolicies(
      serviceWith({
        Plain: '',
        PlainOptional: policyOf('key: KEY_REQUIREMENT_OPTIONAL'),
        PlainIgnored: policyOf('key: KEY_REQUIREMENT_IGNORED'),
        PlainRequired: policyOf('key: KEY_REQUIREMENT_REQUIRED'),
        Idempotent: levelOf('IDEMPOTENT'),
        IdempotentOptional: levelOf('IDEMPOTENT') + policyOf('key: KEY_REQUIREMENT_OPTIONAL'),
        IdempotentRequired: levelOf('IDEMPOTENT') + policyOf('key: KEY_REQUIREMENT_REQUIRED'),
        Safe: levelOf('NO_SIDE_EFFECTS'),
        SafeIgnored: levelOf('NO_SIDE_EFFECTS') + policyOf('key: KEY_REQUIREMENT_IGNORED'),
        'rpc Watch(M) returns (stream M)': policyOf('unprotected_stream: true'),
      }),
    );
    expect(Object.fromEntries(registry.all().map(({ method, key }) => [method, key]))).toEqual({
      Plain: 'REQUIRED',
      PlainOptional: 'OPTIONAL',
      PlainIgnored: 'IGNORED',
      PlainRequired: 'REQUIRED',
      Idempotent: 'IGNORED',
      IdempotentOptional: 'OPTIONAL',
      IdempotentRequired: 'REQUIRED',
      Safe: 'IGNORED',
      SafeIgnored: 'IGNORED',
      Watch: 'IGNORED',
    });
  });

  it('sets formats and durations; max_execution follows the lease', () => {
    const registry = loadPolicies(
      serviceWith({
        Lease: policyOf('lease: {seconds: 2}, key_format: KEY_FORMAT_UUID_V7'),
        All: policyOf(`lease: {nanos: 250000000}, max_execution: {seconds: 60}, max_key_age: {seconds: 3600},
          retention: {seconds: 7200}, max_wait: {nanos: 1000000}, max_response_bytes: 1, key_format: KEY_FORMAT_OPAQUE,
          recording: RECORDING_COMPACT, enforcement: ENFORCEMENT_OBSERVE, allow_detached: true, resume: true`),
        Said: policyOf(`max_wait: {}, max_response_bytes: 0, recording: RECORDING_FULL,
          enforcement: ENFORCEMENT_ENFORCE, max_execution: {seconds: 30}`),
      }),
    );
    const [lease, all, said] = registry.all();
    expect(lease).toMatchObject({ leaseMs: 2_000, maxExecutionMs: 20_000, keyFormat: 'UUID_V7' });
    expect(all).toMatchObject({
      leaseMs: 250,
      maxExecutionMs: minute,
      maxKeyAgeMs: hour,
      retentionMs: 2 * hour,
      maxWaitMs: 1,
      maxResponseBytes: 1,
      keyFormat: 'OPAQUE',
      recording: 'COMPACT',
      enforcement: 'OBSERVE',
      allowDetached: true,
      resume: true,
    } satisfies Partial<MethodPolicy>);
    expect(said).toMatchObject({
      maxExecutionMs: 30_000,
      maxWaitMs: 0,
      maxResponseBytes: 262_144,
      recording: 'FULL',
      enforcement: 'ENFORCE',
      allowDetached: false,
      resume: false,
    } satisfies Partial<MethodPolicy>);
  });

  it('may say on a method without a key what does no harm there, so that its level alone can change', () => {
    const harmless = policyOf(`lease: {seconds: 1}, max_execution: {seconds: 1}, max_key_age: {seconds: 1},
      retention: {seconds: 2}, max_wait: {}, key_format: KEY_FORMAT_OPAQUE, recording: RECORDING_FULL,
      enforcement: ENFORCEMENT_ENFORCE`);
    const registry = loadPolicies(serviceWith({ Keyless: levelOf('IDEMPOTENT') + harmless }));
    expect(registry.get('/t.v1.S/Keyless')).toMatchObject({ key: 'IGNORED', retentionMs: 2_000 });
  });

  it('is not needed: a set without it is governed by the levels', () => {
    const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
    const bare = compileProto('syntax = "proto3"; package t.v1; message M {} service S { rpc Plain(M) returns (M); }');
    const { file } = fromBinary(FileDescriptorSetSchema, bare);
    set.file = file.filter(({ name }) => name === 'test.proto');
    expect(loadPolicies(toBinary(FileDescriptorSetSchema, set)).get('/t.v1.S/Plain')?.key).toBe('REQUIRED');
  });

  it('that cannot be used is refused, and every fault of the set at once', () => {
    const set = serviceWith({
      SafeRequired: levelOf('NO_SIDE_EFFECTS') + policyOf('key: KEY_REQUIREMENT_REQUIRED'),
      SafeOptional: levelOf('NO_SIDE_EFFECTS') + policyOf('key: KEY_REQUIREMENT_OPTIONAL'),
      Lease: policyOf('lease: {}'),
      Execution: policyOf('max_execution: {seconds: -1}'),
      KeyAge: policyOf('max_key_age: {nanos: 500000}'),
      Retention: policyOf('retention: {seconds: 10}, lease: {seconds: 10}'),
      Timer: policyOf('lease: {seconds: 2147484}, retention: {seconds: 9999999}'),
      TenLeases: policyOf('lease: {seconds: 214749}'),
      Unary: policyOf('unprotected_stream: true'),
      'rpc Keyed(M) returns (stream M)': policyOf('unprotected_stream: true, key: KEY_REQUIREMENT_REQUIRED'),
      Wait: policyOf('max_wait: {nanos: 1}'),
      WaitBack: policyOf('max_wait: {seconds: -1}'),
      WaitLong: policyOf('max_wait: {seconds: 2147484}'),
      Bytes: policyOf('max_response_bytes: 134217729'),
      Shorter: policyOf('lease: {seconds: 10}, max_execution: {seconds: 9}'),
      ThreeYears: policyOf('max_key_age: {seconds: 94694401}'),
      Century: policyOf('retention: {seconds: 3153600001}, max_key_age: {seconds: 94694400}'),
      Good: policyOf('lease: {seconds: 1}'),
    });
    expect(policyFaults(() => loadPolicies(set))).toEqual([
      '/t.v1.S/SafeRequired: key: expected no key, since the method has no side effects; got REQUIRED',
      '/t.v1.S/SafeOptional: key: expected no key, since the method has no side effects; got OPTIONAL',
      '/t.v1.S/Lease: lease: expected a positive duration in whole milliseconds; got 0 ms',
      '/t.v1.S/Execution: max_execution: expected a positive duration in whole milliseconds; got -1000 ms',
      '/t.v1.S/KeyAge: max_key_age: expected a positive duration in whole milliseconds; got 0.5 ms',
      '/t.v1.S/Retention: lease: expected less than the retention, 10000 ms; got 10000 ms',
      '/t.v1.S/Timer: lease: expected at most 2147483647 ms; got 2147484000 ms',
      '/t.v1.S/TenLeases: max_execution: expected at most 2147483647 ms; got 2147490000 ms',
      '/t.v1.S/Unary: unprotected_stream: expected a streaming method',
      '/t.v1.S/Keyed: key: expected no key, since unprotected_stream is set; got REQUIRED',
      '/t.v1.S/Wait: max_wait: expected zero or a positive duration in whole milliseconds; got 0.000001 ms',
      '/t.v1.S/WaitBack: max_wait: expected zero or a positive duration in whole milliseconds; got -1000 ms',
      '/t.v1.S/WaitLong: max_wait: expected at most 2147483647 ms; got 2147484000 ms',
      '/t.v1.S/Bytes: max_response_bytes: expected at most 134217728; got 134217729',
      '/t.v1.S/Shorter: max_execution: expected at least the lease, 10000 ms; got 9000 ms',
      '/t.v1.S/ThreeYears: max_key_age: expected at most 94694400000 ms, since each of its days is a table; got 94694401000 ms',
      '/t.v1.S/Century: retention: expected at most 3153600000000 ms; got 3153600001000 ms',
    ]);
  });

  it('that needs a key is refused on a method that takes none, setting by setting', () => {
    const needy = `max_wait: {seconds: 1}, max_response_bytes: 1, recording: RECORDING_COMPACT,
      enforcement: ENFORCEMENT_OBSERVE, allow_detached: true, resume: true`;
    const set = serviceWith({
      Safe: levelOf('NO_SIDE_EFFECTS') + policyOf(needy),
      Idempotent: levelOf('IDEMPOTENT') + policyOf('recording: RECORDING_COMPACT'),
      Ignored: policyOf('key: KEY_REQUIREMENT_IGNORED, enforcement: ENFORCEMENT_OBSERVE'),
      'rpc Watch(M) returns (stream M)': policyOf('unprotected_stream: true, max_wait: {seconds: 1}'),
      Optional: levelOf('IDEMPOTENT') + policyOf(`key: KEY_REQUIREMENT_OPTIONAL, ${needy}`),
    });
    const keyed = 'a method that takes a key; this one ignores it';
    expect(policyFaults(() => loadPolicies(set))).toEqual([
      `/t.v1.S/Safe: max_wait: expected ${keyed}`,
      `/t.v1.S/Safe: max_response_bytes: expected ${keyed}`,
      `/t.v1.S/Safe: recording: expected ${keyed}`,
      `/t.v1.S/Safe: enforcement: expected ${keyed}`,
      `/t.v1.S/Safe: resume: expected ${keyed}`,
      `/t.v1.S/Safe: allow_detached: expected ${keyed}`,
      `/t.v1.S/Idempotent: recording: expected ${keyed}`,
      `/t.v1.S/Ignored: enforcement: expected ${keyed}`,
      `/t.v1.S/Watch: max_wait: expected ${keyed}`,
    ]);
  });

  it('of a later version is refused where it says what this one does not know', () => {
    const any = policyOf('resume: true');
    const set = fromBinary(FileDescriptorSetSchema, serviceWith({ Field: any, Keys: any, Modes: any }));
    // The fields of the option, length first, written over what the compiler put there.
    const said: Readonly<Record<string, readonly number[]>> = {
      Field: [3, (14 << 3) | 2, 1, 0],
      Keys: [4, 1 << 3, 9, 2 << 3, 9],
      Modes: [4, 9 << 3, 9, 10 << 3, 9],
    };
    for (const { name, options } of set.file.flatMap((file) => file.service).flatMap((service) => service.method)) {
      if (!options) throw new Error(`${name} has lost its option`);
      options.$unknown = options.$unknown?.map(({ no, wireType }) => ({
        no,
        wireType,
        data: Uint8Array.from(said[name] ?? []),
      }));
    }
    expect(policyFaults(() => loadPolicies(toBinary(FileDescriptorSetSchema, set)))).toEqual([
      '/t.v1.S/Field: field 14: expected a setting that this version knows',
      '/t.v1.S/Keys: key: expected a value that this version knows; got 9',
      '/t.v1.S/Keys: key_format: expected a value that this version knows; got 9',
      '/t.v1.S/Modes: recording: expected a value that this version knows; got 9',
      '/t.v1.S/Modes: enforcement: expected a value that this version knows; got 9',
    ]);
  });
});
