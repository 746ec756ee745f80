import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { methodPolicy } from './method-policy';
import type { MethodPolicy, PolicyRegistry } from './policy';
import { POLICY_OPTION, readPolicyOption } from './policy-option';

/** The protos and what is to be served don't go together; nothing may be served. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';

  /** @param faults one line each: the method, the setting, what was expected */
  constructor(
    summary: string,
    readonly faults: readonly string[],
  ) {
    super([summary, ...faults].join('\n  '));
  }
}

/** What is to be served, as in a `ServiceDefinition` of grpc-js. */
export interface ServedMethod {
  /** As on the wire: `/package.Service/Method`. */
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

/**
 * Reads the policy of every method of a descriptor set: from its `idempotency_level` and its option
 * `(idempotency.v1.policy)`, with the defaults filled in (design 3.1 and 4.1). A set that doesn't declare the option is
 * governed by the levels alone.
 *
 * @param descriptorSet a serialized google.protobuf.FileDescriptorSet with all imports, as `buf build` and
 *   `protoc --include_imports` write it. Only such a set has the options: neither generated code nor a set that went
 *   through another library can be relied on to have kept them.
 * @throws PolicyError that names every setting that can't be used
 */
export function loadPolicies(descriptorSet: Uint8Array): PolicyRegistry {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet));
  const extension = registry.getExtension(POLICY_OPTION);
  const policies = new Map<string, MethodPolicy>();
  const faults: string[] = [];
  for (const method of [...registry.files].flatMap((file) => file.services).flatMap((service) => service.methods)) {
    const path = `/${method.parent.typeName}/${method.name}`;
    const option = readPolicyOption(method, extension);
    const refuse = (setting: string, expected: string): void => {
      faults.push(`${path}: ${setting}: expected ${expected}`);
    };
    policies.set(path, methodPolicy(method, option, refuse));
  }
  if (faults.length > 0) throw new PolicyError('these policies cannot be used:', faults);
  const all = [...policies.values()];
  return { get: (path) => policies.get(path), all: () => all };
}

/**
 * The check before a server starts (design 4.1): every method has a policy, and every method that can't be protected
 * says so. Only a single request can be recognised by its fingerprint, and only a single answer recorded; a stream that
 * changes nothing needs neither.
 *
 * @throws PolicyError that names every method at fault
 */
export function assertServable(
  registry: PolicyRegistry,
  services: readonly Readonly<Record<string, ServedMethod>>[],
): void {
  const faults = services
    .flatMap((service) => Object.values(service))
    .map((method) => faultOf(method, registry.get(method.path)))
    .filter((fault) => fault !== undefined);
  if (faults.length > 0) throw new PolicyError('these methods cannot be served:', faults);
}

function faultOf(
  { path, requestStream, responseStream }: ServedMethod,
  policy: MethodPolicy | undefined,
): string | undefined {
  if (policy === undefined) return `${path}: expected in the descriptor set that the policies come from`;
  const unprotected = requestStream || (responseStream && policy.level !== 'NO_SIDE_EFFECTS');
  if (!unprotected || policy.unprotectedStream) return undefined;
  return `${path}: expected unprotected_stream: true in its (${POLICY_OPTION}), since a stream is not protected`;
}
