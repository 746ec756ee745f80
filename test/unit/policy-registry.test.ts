import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel as ProtoLevel,
  MethodOptionsSchema,
} from '@bufbuild/protobuf/wkt';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import type { MethodPolicy } from '../../src/idempotency/policy';
import { assertServable, loadPolicies, PolicyError } from '../../src/idempotency/policy-registry';
import { compileProto } from '../support/compile-proto';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** A service `t.v1.S` with the given methods; each is `Name: options`, or a whole rpc where it streams. */
function serviceWith(methods: Readonly<Record<string, string>>): Uint8Array {
  const rpcs = Object.entries(methods).map(([name, options]) =>
    name.startsWith('rpc ') ? `${name} {${options}}` : `rpc ${name}(M) returns (M) {${options}}`,
  );
  return compileProto(`
    syntax = "proto3";
    package t.v1;
    import "idempotency/v1/policy.proto";
    message M {}
    service S { ${rpcs.join('\n')} }`);
}

const policyOf = (fields: string): string => `option (idempotency.v1.policy) = {${fields}};`;
const levelOf = (level: string): string => `option idempotency_level = ${level};`;

function faultsOf(action: () => unknown): readonly string[] {
  try {
    action();
  } catch (error) {
    if (error instanceof PolicyError) return error.faults;
    throw error;
  }
  return [];
}

describe('the policies of our own protos', () => {
  const registry = loadPolicies(descriptorSet);
  const path = (method: string): string => `/payments.v1.PaymentsService/${method}`;

  it('say what the contract says', () => {
    const told = registry.all().map(({ method, level, key }) => `${method} ${level} ${key}`);
    expect(told).toEqual([
      'GetRequest NO_SIDE_EFFECTS IGNORED',
      'CreatePayment UNKNOWN REQUIRED',
      'RefundPayment UNKNOWN REQUIRED',
      'GetPayment NO_SIDE_EFFECTS IGNORED',
      'ListPayments NO_SIDE_EFFECTS IGNORED',
      'CancelPayment IDEMPOTENT IGNORED',
      'UpdatePayment IDEMPOTENT OPTIONAL',
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
      resume: false,
      allowDetached: false,
      unprotectedStream: false,
      clientStreaming: false,
      serverStreaming: false,
      request: undefined,
    });
    expect(registry.get(path('GetPayment'))?.retentionMs).toBe(3 * day);
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
    const changed = withLevels({ CreatePayment: ProtoLevel.IDEMPOTENT, GetPayment: ProtoLevel.IDEMPOTENCY_UNKNOWN });
    const told = ['CreatePayment', 'GetPayment'].map((method) => changed.get(path(method)));
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
          retention: {seconds: 7200}, max_wait: {}, key_format: KEY_FORMAT_OPAQUE, recording: RECORDING_FULL,
          enforcement: ENFORCEMENT_ENFORCE`),
      }),
    );
    const [lease, all] = registry.all();
    expect(lease).toMatchObject({ leaseMs: 2_000, maxExecutionMs: 20_000, keyFormat: 'UUID_V7' });
    expect(all).toMatchObject({
      leaseMs: 250,
      maxExecutionMs: minute,
      maxKeyAgeMs: hour,
      retentionMs: 2 * hour,
      keyFormat: 'OPAQUE',
    } satisfies Partial<MethodPolicy>);
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
      Bytes: policyOf('max_response_bytes: 1'),
      Compact: policyOf('recording: RECORDING_COMPACT'),
      Observe: policyOf('enforcement: ENFORCEMENT_OBSERVE'),
      Resume: policyOf('resume: true'),
      Detached: policyOf('allow_detached: true'),
      Good: policyOf('lease: {seconds: 1}'),
    });
    expect(faultsOf(() => loadPolicies(set))).toEqual([
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
      "/t.v1.S/Wait: max_wait: expected 0 s; this version can't carry out more",
      "/t.v1.S/Bytes: max_response_bytes: expected the default; this version can't carry out more",
      "/t.v1.S/Compact: recording: expected FULL; this version can't carry out more",
      "/t.v1.S/Observe: enforcement: expected ENFORCE; this version can't carry out more",
      "/t.v1.S/Resume: resume: expected false; this version can't carry out more",
      "/t.v1.S/Detached: allow_detached: expected false; this version can't carry out more",
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
    expect(faultsOf(() => loadPolicies(toBinary(FileDescriptorSetSchema, set)))).toEqual([
      '/t.v1.S/Field: field 14: expected a setting that this version knows',
      '/t.v1.S/Keys: key: expected a value that this version knows; got 9',
      '/t.v1.S/Keys: key_format: expected a value that this version knows; got 9',
      "/t.v1.S/Modes: recording: expected FULL; this version can't carry out more",
      "/t.v1.S/Modes: enforcement: expected ENFORCE; this version can't carry out more",
    ]);
  });
});

describe('assertServable', () => {
  const unary = { requestStream: false, responseStream: false };

  it('refuses served methods without a policy, and names each', () => {
    const served = {
      known: { ...unary, path: '/payments.v1.PaymentsService/GetPayment' },
      first: { ...unary, path: '/payments.v1.PaymentsService/Charge' },
    };
    const other = { second: { ...unary, path: '/other.v1.S/Charge' } };
    const check = (): void => assertServable(loadPolicies(descriptorSet), [served, other]);
    expect(faultsOf(check)).toEqual([
      '/payments.v1.PaymentsService/Charge: expected in the descriptor set that the policies come from',
      '/other.v1.S/Charge: expected in the descriptor set that the policies come from',
    ]);
    expect(check).toThrow('/other.v1.S/Charge');
  });

  it('refuses streams that are neither safe nor marked, and names each', () => {
    const marked = policyOf('unprotected_stream: true');
    const registry = loadPolicies(
      serviceWith({
        Unary: '',
        'rpc Client(stream M) returns (M)': '',
        'rpc SafeClient(stream M) returns (M)': levelOf('NO_SIDE_EFFECTS'),
        'rpc Both(stream M) returns (stream M)': levelOf('IDEMPOTENT'),
        'rpc Server(M) returns (stream M)': '',
        'rpc IdempotentServer(M) returns (stream M)': levelOf('IDEMPOTENT'),
        'rpc SafeServer(M) returns (stream M)': levelOf('NO_SIDE_EFFECTS'),
        'rpc MarkedClient(stream M) returns (M)': marked,
        'rpc MarkedBoth(stream M) returns (stream M)': marked,
        'rpc MarkedServer(M) returns (stream M)': marked,
      }),
    );
    const service = Object.fromEntries(
      registry
        .all()
        .map(({ method, path, clientStreaming, serverStreaming }) => [
          method,
          { path, requestStream: clientStreaming, responseStream: serverStreaming },
        ]),
    );
    const expected =
      'expected unprotected_stream: true in its (idempotency.v1.policy), since a stream is not protected';
    expect(faultsOf(() => assertServable(registry, [service]))).toEqual([
      `/t.v1.S/Client: ${expected}`,
      `/t.v1.S/SafeClient: ${expected}`,
      `/t.v1.S/Both: ${expected}`,
      `/t.v1.S/Server: ${expected}`,
      `/t.v1.S/IdempotentServer: ${expected}`,
    ]);
  });
});
