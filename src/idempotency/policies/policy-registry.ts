import type { MethodPolicy, PolicyRegistry } from '../policy';
import { methodPolicy } from './method-policy';
import type { MethodSource } from './method-source';
import { PolicyError } from './policy-error';

/**
 * The policies of methods, wherever they were read.
 *
 * @throws PolicyError that names every setting of every method that can't be used
 */
export function policyRegistry(methods: readonly MethodSource[]): PolicyRegistry {
  const policies = new Map<string, MethodPolicy>();
  const faults: string[] = [];
  for (const source of methods) {
    const path = `/${source.service}/${source.method}`;
    policies.set(
      path,
      methodPolicy(source, (setting, expected) => faults.push(`${path}: ${setting}: expected ${expected}`)),
    );
  }
  if (faults.length > 0) throw new PolicyError('these policies cannot be used:', faults);
  const all = [...policies.values()];
  return { get: (path) => policies.get(path), all: () => all };
}
