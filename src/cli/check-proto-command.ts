import { parseArgs } from 'node:util';
import { assertServable, type MethodPolicy, type PolicyRegistry, PolicyError } from '../idempotency/index';
import { type Command, EXIT } from './command';
import { envoyFaults } from './envoy-check';
import { readInput, readPolicies } from './read-policies';
import { resendSafety } from './resend-safety';
import { checkServiceConfig } from './service-config-check';

/** `check-proto`: what a server would refuse to start with, and what configuration beside it would retry unsafely. */
export const checkProtoCommand: Command = {
  name: 'check-proto',
  usage: '[--service <full name>]… [--service-config <file>]… [--envoy <file>]… [<descriptor set> | -]…',
  summary: 'check policies as a server does at its start, and what service config and Envoy routes would retry',
  details: [
    "of descriptor sets, as buf and protoc write them; default: this package's protos",
    'prints a line for each method, each fault and each warning, and exits with 1 where there is a fault',
  ],
  example: 'grpc-idempotency check-proto --envoy envoy.yaml image.binpb',
  run: async ({ args, print }) => {
    const names = { type: 'string', multiple: true } as const;
    const options = { service: names, 'service-config': names, envoy: names } as const;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const { policies, faults: unusable } = readPolicies(positionals, values.service ?? []);
    const text = (file: string): string => Buffer.from(readInput(file)).toString('utf8');
    const configs = (values['service-config'] ?? []).map((file) => checkServiceConfig(file, text(file), policies));
    const warnings = configs.flatMap((found) => found.warnings);
    const faults = [
      ...unusable,
      ...unservable(policies),
      ...configs.flatMap((found) => found.faults),
      ...(values.envoy ?? []).flatMap((file) => envoyFaults(file, text(file), policies)),
    ];
    for (const policy of policies) print(lineOf(policy));
    for (const fault of faults) print(`fault: ${fault}`);
    for (const warning of warnings) print(`warning: ${warning}`);
    const warned = warnings.length === 0 ? '' : `, ${warnings.length} warnings`;
    print(`${policies.length} methods, ${faults.length} faults${warned}`);
    return faults.length === 0 ? EXIT.ok : EXIT.refused;
  },
};

function unservable(policies: readonly MethodPolicy[]): readonly string[] {
  const byPath = new Map(policies.map((policy) => [policy.path, policy]));
  const registry: PolicyRegistry = { get: (path) => byPath.get(path), all: () => policies };
  const served = policies.map(({ path, clientStreaming, serverStreaming }) => {
    return [path, { path, requestStream: clientStreaming, responseStream: serverStreaming }] as const;
  });
  try {
    assertServable(registry, [Object.fromEntries(served)]);
    return [];
  } catch (error) {
    if (error instanceof PolicyError) return error.faults;
    throw error;
  }
}

function lineOf(policy: MethodPolicy): string {
  return `${policy.path}: level ${policy.level}, key ${policy.key}, resent ${resentWhen(policy)}`;
}

function resentWhen(policy: MethodPolicy): string {
  const safety = resendSafety(policy);
  switch (safety.kind) {
    case 'by_level':
      return 'safely';
    case 'by_key':
      return 'safely under its key';
    case 'unsafe':
      return `by nothing that knows no keys: ${safety.why}`;
  }
}
