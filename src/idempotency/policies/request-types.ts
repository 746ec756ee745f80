import type { MethodPolicy, PolicyRegistry } from '../policy';
import { loadPolicies } from './descriptor-set';
import type { MethodSource } from './method-source';
import { PolicyError } from './policy-error';
import { policyRegistry } from './policy-registry';

/** What reading policies from definitions may take beside them. */
export interface DefinitionOptions {
  /**
   * A descriptor set, as for `loadPolicies`, of which the types of the requests are taken: a server needs them to tell a
   * retry from another request. Its options must say the same as the definitions.
   */
  readonly requestTypes?: Uint8Array;
}

/**
 * The policies of definitions, with the types of a descriptor set where there is one.
 *
 * @throws PolicyError where a setting can't be used, or the two differ, with a line for each difference
 */
export function registryOfDefinitions(
  methods: readonly MethodSource[],
  { requestTypes }: DefinitionOptions,
): PolicyRegistry {
  if (requestTypes === undefined) return policyRegistry(methods);
  const types = loadPolicies(requestTypes);
  const registry = policyRegistry(
    methods.map((method) => ({ ...method, request: types.get(`/${method.service}/${method.method}`)?.request })),
  );
  const faults = registry.all().flatMap((policy) => differences(policy, types.get(policy.path)));
  if (faults.length > 0) throw new PolicyError('the definitions and requestTypes are not of the same protos:', faults);
  return registry;
}

function differences(policy: MethodPolicy, other: MethodPolicy | undefined): readonly string[] {
  if (other === undefined) return [`${policy.path}: expected in requestTypes`];
  return Object.entries(policy)
    .map(([setting, value]) => ({ setting, value: value as unknown, beside: other[setting as keyof MethodPolicy] }))
    .filter(({ value, beside }) => value !== beside)
    .map(({ setting, value, beside }) => `${policy.path}: ${setting}: ${String(value)}, and ${String(beside)} there`);
}
