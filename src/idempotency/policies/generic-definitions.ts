import { BinaryReader } from '@bufbuild/protobuf/wire';
import { Policy } from '../../gen/proto/idempotency/v1/policy';
import type { PolicyRegistry } from '../policy';
import { levelNamed } from './level-name';
import type { MethodOptions, MethodSource } from './method-source';
import { PolicyError } from './policy-error';
import type { RefuseSetting } from './policy-settings';
import { type DefinitionOptions, registryOfDefinitions } from './request-types';

/** A service as ts-proto writes it with `outputServices=generic-definitions`. */
export interface GenericDefinition {
  /** `payments.v1.PaymentsService` */
  readonly fullName: string;
  readonly methods: Readonly<Record<string, GenericMethod>>;
}

/** One method of a {@link GenericDefinition}. */
export interface GenericMethod {
  /** `CreatePayment` */
  readonly name: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly options: {
    readonly idempotencyLevel?: string;
    /** Tag → values with their length in front. */
    readonly _unknownFields?: Readonly<Record<number, readonly Uint8Array[]>>;
  };
}

/** On the wire: number 51871, length-delimited. */
const POLICY_TAG = 414_970;

/**
 * Reads the policies of services that ts-proto wrote with `outputServices=generic-definitions`. They have the options to
 * the byte, but not the types of the requests, and with them not `(idempotency.v1.not_in_fingerprint)`: enough for a
 * client, while a server needs `requestTypes` for each method that takes a key.
 *
 * @throws PolicyError that names every setting that can't be used
 */
export function policiesFromGenericDefinitions(
  definitions: readonly GenericDefinition[],
  options: DefinitionOptions = {},
): PolicyRegistry {
  const methods = definitions.flatMap(({ fullName, methods: named }) =>
    Object.values(named).map((method) => methodSource(fullName, method)),
  );
  return registryOfDefinitions(methods, options);
}

function methodSource(service: string, method: GenericMethod): MethodSource {
  const { name, requestStream, responseStream, options } = method;
  // Written by an older generator, whatever its type says.
  if ((options as unknown) === undefined) {
    throw new PolicyError('this definition has lost its options; generate it anew with ts-proto 2:', [
      `/${service}/${name}: expected options`,
    ]);
  }
  return {
    service,
    method: name,
    clientStreaming: requestStream,
    serverStreaming: responseStream,
    request: undefined,
    read: (refuse) => readOptions(options, refuse),
  };
}

function readOptions(options: GenericMethod['options'], refuse: RefuseSetting): MethodOptions {
  const parts = options._unknownFields?.[POLICY_TAG] ?? [];
  return {
    level: levelNamed(options.idempotencyLevel, refuse),
    // Several occurrences of one message are one message, one after the other.
    policy: Policy.decode(Buffer.concat(parts.map((part) => new BinaryReader(part).bytes()))),
  };
}
