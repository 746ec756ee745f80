import type { MethodPolicy, PolicyRegistry } from '../policy';
import { PolicyError } from './policy-error';
import { POLICY_OPTION } from './policy-option';

/** What is to be served, as in a `ServiceDefinition` of grpc-js. */
export interface ServedMethod {
  /** As on the wire: `/package.Service/Method`. */
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
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
    .map((method) => servingFault(method, registry.get(method.path)))
    .filter((fault) => fault !== undefined);
  if (faults.length > 0) throw new PolicyError('these methods cannot be served:', faults);
}

/** Why a method can't be served by its policy; undefined where it can. */
export function servingFault(
  { path, requestStream, responseStream }: ServedMethod,
  policy: MethodPolicy | undefined,
): string | undefined {
  if (policy === undefined) return `${path}: expected in the descriptor set that the policies come from`;
  const unprotected = requestStream || (responseStream && policy.level !== 'NO_SIDE_EFFECTS');
  if (unprotected && !policy.unprotectedStream) {
    return `${path}: expected unprotected_stream: true in its (${POLICY_OPTION}), since a stream is not protected`;
  }
  if (policy.key !== 'IGNORED' && !policy.requestKnown) {
    return (
      `${path}: expected the type of its request, which decides what is the same request: pass ` +
      '{ requestTypes: bytes }, a descriptor set of the same protos, where its policies are read'
    );
  }
  return undefined;
}
