import type { PolicyRegistry } from '../policy';
import { definedMethods, type DefinedMethod, type PackageDefinition } from './defined-methods';
import { lostDefinitionOptions } from './lost-definition-options';
import { levelNamed } from './level-name';
import type { MethodOptions } from './method-source';
import { namesOption } from './option-name';
import { readOptionValues } from './option-values';
import { PolicyError } from './policy-error';
import { POLICY_OPTION } from './policy-option';
import type { RefuseSetting } from './policy-settings';
import { type DefinitionOptions, registryOfDefinitions } from './request-types';

/**
 * Reads the policies of what `load`, `loadSync` or `fromJSON` of @grpc/proto-loader made of protos, however they spell
 * the option: `(idempotency.v1.policy)`, with a dot in front, or relative to their package.
 *
 * A definition doesn't hold the options of fields, nor which of them have presence. A type that has neither is whole;
 * where another one is the request of a method that takes a key, a server needs `requestTypes`. A client needs no types.
 *
 * @param definition not one of `loadFileDescriptorSetFromBuffer` and its like, which lose all options: pass the bytes of
 *   the set to `loadPolicies` instead
 * @throws PolicyError that names every setting that can't be used, or every method that has lost its options
 */
export function policiesFromPackageDefinition(
  definition: PackageDefinition,
  options: DefinitionOptions = {},
): PolicyRegistry {
  const methods = definedMethods(definition);
  const lost = lostDefinitionOptions(methods);
  if (lost.length > 0) {
    throw new PolicyError(
      'this definition has lost its options; make it with load or loadSync of @grpc/proto-loader from .proto files, ' +
        'or pass the descriptor set that it came from to loadPolicies:',
      lost,
    );
  }
  return registryOfDefinitions(
    methods.map((method) => ({
      ...method,
      request: method.files.request(method.path),
      read: (refuse) => readOptions(method, refuse),
    })),
    options,
  );
}

function readOptions({ service, options = {} }: DefinedMethod, refuse: RefuseSetting): MethodOptions {
  const spelt = Object.entries(options).filter(([spelling]) => namesOption(spelling, POLICY_OPTION, service));
  return {
    level: levelNamed(options['idempotency_level'], refuse),
    policy: readOptionValues(
      spelt.map(([, value]) => value),
      refuse,
    ),
  };
}
