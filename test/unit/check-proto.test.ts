import { check, file, methodsIn, set, UNSAFE } from '../support/check-proto';
import { compileProto } from '../support/compile-proto';
import { policyOf, serviceWith } from '../support/service-proto';

describe('check-proto', () => {
  it("finds nothing wrong with this package's protos, and tells level and key of each method", async () => {
    const { code, printed } = await check();
    expect(code).toBe(0);
    expect(printed).toEqual(
      expect.arrayContaining([
        '/payments.v1.PaymentsService/CreatePayment: level UNKNOWN, key REQUIRED, resent safely under its key',
        '/payments.v1.PaymentsService/GetPayment: level NO_SIDE_EFFECTS, key IGNORED, resent safely',
        '/payments.v1.PaymentsService/UpdatePayment: level IDEMPOTENT, key OPTIONAL, resent safely',
      ]),
    );
    expect(printed.at(-1)).toMatch(/^\d+ methods, 0 faults$/);
  });

  it('tells why a method may not be resent', async () => {
    const { code, printed } = await check(set);
    expect(code).toBe(0);
    const nothing = 'by nothing that knows no keys:';
    expect(printed.slice(0, -1)).toEqual([
      '/t.v1.S/Safe: level NO_SIDE_EFFECTS, key IGNORED, resent safely',
      '/t.v1.S/Idempotent: level IDEMPOTENT, key IGNORED, resent safely',
      '/t.v1.S/Keyed: level UNKNOWN, key REQUIRED, resent safely under its key',
      `/t.v1.S/Ignored: level UNKNOWN, key IGNORED, resent ${nothing} its level is unknown and no key protects it`,
      `/t.v1.S/Optional: level UNKNOWN, key OPTIONAL, resent ${nothing} its level is unknown and calls may come without a key`,
      `/t.v1.S/Observed: level UNKNOWN, key REQUIRED, resent ${nothing} its key is only observed, so keyless calls run unprotected`,
      `/t.v1.S/Detached: level UNKNOWN, key REQUIRED, resent ${nothing} allow_detached lets it answer without a record, so that a retry runs again`,
      '/t.v1.S/SafeStream: level NO_SIDE_EFFECTS, key IGNORED, resent safely',
      `/t.v1.S/Stream: level UNKNOWN, key IGNORED, resent ${nothing} it answers with a stream, which is not protected`,
      `/t.v1.S/Upload: level IDEMPOTENT, key IGNORED, resent ${nothing} it takes a stream, which is not protected`,
    ]);
  });

  it('names the file, the method, the setting and what was expected, for every fault of every set', async () => {
    const unusable = file(
      'unusable.binpb',
      serviceWith({ A: policyOf('lease: {seconds: -1}'), B: policyOf('lease: {}') }),
    );
    const other = file('other.binpb', 'no set');
    const { code, faults } = await check(unusable, other, set);
    expect(code).toBe(1);
    expect(faults).toEqual([
      `${unusable}: these policies cannot be used:`,
      `${unusable}: /t.v1.S/A: lease: expected a positive duration in whole milliseconds; got -1000 ms`,
      `${unusable}: /t.v1.S/B: lease: expected a positive duration in whole milliseconds; got 0 ms`,
      expect.stringMatching(
        /other\.binpb: this is not a descriptor set with all its imports; make one with `buf build /,
      ),
      expect.stringMatching(/other\.binpb: ./),
    ]);
  });

  it('names streams that stop a server, unless they are of a service that is not asked for', async () => {
    const streams = file(
      'streams.binpb',
      compileProto(`syntax = "proto3"; package t.v1; message M {}
        service S { rpc Watch(M) returns (stream M); } service T { rpc Get(M) returns (M); }`),
    );
    const { code, faults } = await check(streams);
    expect([code, faults]).toEqual([1, [expect.stringMatching(/^\/t.v1.S\/Watch: expected unprotected_stream: true/)]]);
    expect(await check('--service', 't.v1.T', streams)).toMatchObject({ code: 0, faults: [] });
  });

  it.each([
    [['--service', 't.v1.Nothing', set], 'no service t.v1.Nothing; there are: t.v1.S'],
    [['proto'], 'proto is not a descriptor set; pass one on: buf build --as-file-descriptor-set -o - |'],
    [['payments.proto'], 'payments.proto is not a descriptor set'],
    [['missing.binpb'], 'missing.binpb cannot be read: '],
    [['--envoy', 'missing.yaml'], 'missing.yaml cannot be read: '],
    [['--envoi', 'x'], `'--envoi'`],
  ])('%j is not understood', async (args, message) => {
    const { code, errors } = await check(...args);
    expect(code).toBe(2);
    expect(errors).toContain(message);
    expect(errors).toContain('usage:\n  grpc-idempotency check-proto ');
  });
});

const retryPolicy = { maxAttempts: 3, retryableStatusCodes: ['UNAVAILABLE'] };
const config = (name: string, content: unknown) => file(name, JSON.stringify(content));
const checkConfig = async (methodConfig: readonly object[]) => {
  const path = config('config.json', { methodConfig });
  const { code, faults } = await check('--service-config', path, set);
  return { code, faults: faults.map((fault) => fault.replace(`${path}: `, '')) };
};

describe('check-proto --service-config', () => {
  const service = 't.v1.S';

  it('names every method that it would retry unsafely, with the entry and the remedy', async () => {
    const { code, faults } = await checkConfig([{ name: [{ service }], retryPolicy }]);
    expect(code).toBe(1);
    expect(methodsIn(faults)).toEqual(UNSAFE);
    expect(faults[0]).toBe(
      'methodConfig[0]: /t.v1.S/Ignored: its retryPolicy is unsafe, since its level is unknown and no key protects it; ' +
        'require a key: (idempotency.v1.policy) = {key: KEY_REQUIREMENT_REQUIRED}',
    );
  });

  it.each<[string, object[], string[]]>([
    ['no retries', [{ name: [{ service }], timeout: '1s' }], []],
    ['the default of a channel', [{ name: [{}], retryPolicy }], UNSAFE],
    ['hedging', [{ name: [{ service, method: 'Ignored' }], hedgingPolicy: { maxAttempts: 2 } }], ['/t.v1.S/Ignored']],
    [
      'safe methods alone',
      ['Safe', 'Idempotent', 'Keyed'].map((method) => ({ name: [{ service, method }], retryPolicy })),
      [],
    ],
    [
      'a method before its service, wherever they stand',
      [
        { name: [{ service }], retryPolicy },
        { name: UNSAFE.slice(1).map((path) => ({ service, method: path.split('/')[2] })), timeout: '1s' },
      ],
      UNSAFE.slice(0, 1),
    ],
    [
      'a service before the default',
      [
        { name: [{}], retryPolicy },
        { name: [{ service }], timeout: '1s' },
      ],
      [],
    ],
  ])('reads as gRPC does: %s', async (_, methodConfig, expected) => {
    expect(methodsIn((await checkConfig(methodConfig)).faults)).toEqual(expected);
  });

  const capped = (policy: string, asked: number) =>
    `its ${policy} asks for ${asked} attempts, of which clients make 5 and say nothing; ask for 5, or raise the limit of ` +
    'each channel (grpc-node.retry_max_attempts_limit)';

  it('warns of attempts that no client makes, by file, entry, method and remedy, and finds no fault in it (case J2)', async () => {
    const named = (method: string) => ({ name: [{ service, method }] });
    const path = config('capped.json', {
      methodConfig: [
        { ...named('Keyed'), retryPolicy: { ...retryPolicy, maxAttempts: 6 } },
        { ...named('Safe'), hedgingPolicy: { maxAttempts: 50 } },
        { ...named('Idempotent'), retryPolicy: { ...retryPolicy, maxAttempts: 5 } },
      ],
    });
    const { code, faults, printed } = await check('--service-config', path, set);
    expect(faults).toEqual([]);
    expect(printed.filter((line) => line.startsWith('warning: '))).toEqual([
      `warning: ${path}: methodConfig[1]: /t.v1.S/Safe: ${capped('hedgingPolicy', 50)}`,
      `warning: ${path}: methodConfig[0]: /t.v1.S/Keyed: ${capped('retryPolicy', 6)}`,
    ]);
    expect(printed.at(-1)).toBe('10 methods, 0 faults, 2 warnings');
    expect(code).toBe(0);
  });

  it('warns beside faults, of each method that the entry is for, also where DNS brings it', async () => {
    const serviceConfig = { methodConfig: [{ name: [{}], retryPolicy: { ...retryPolicy, maxAttempts: 9 } }] };
    const { code, faults, printed } = await check('--service-config', config('both.json', [{ serviceConfig }]), set);
    expect([code, methodsIn(faults)]).toEqual([1, UNSAFE]);
    const warnings = printed.filter((line) => line.startsWith('warning: '));
    expect(warnings).toHaveLength(10);
    expect(warnings[0]).toContain(`[0].methodConfig[0]: /t.v1.S/Safe: ${capped('retryPolicy', 9)}`);
  });

  it('names what is misspelt in it (case J2)', async () => {
    const name = [{ service, method: 'Safee' }, { service: 't.v1.SS' }, { service }];
    const { faults } = await checkConfig([{ name: [{ service: 'x', method: 'y' }] }, { name, retryPolicy }]);
    expect(faults.slice(0, 2)).toEqual([
      'methodConfig[1]: /t.v1.S/Safee: expected a method of the descriptor set',
      'methodConfig[1]: /t.v1.SS/*: expected a method of the descriptor set',
    ]);
  });

  it('reads each of the choices that DNS brings', async () => {
    const serviceConfig = { methodConfig: [{ name: [{ service, method: 'Ignored' }], retryPolicy }] };
    const path = config('choices.json', [{ percentage: 1, serviceConfig }, { serviceConfig: {} }, 5]);
    const { faults } = await check('--service-config', path, set);
    expect(faults).toEqual([
      expect.stringContaining('[0].methodConfig[0]: /t.v1.S/Ignored'),
      expect.stringContaining('[2].expected a service config'),
    ]);
  });

  it('refuses what is no JSON', async () => {
    const { code, faults } = await check('--service-config', file('broken.json', '{'), set);
    expect([code, faults]).toEqual([1, [expect.stringMatching(/broken\.json: expected JSON: /)]]);
  });
});
