import { createFileRegistry, type DescMethod, type FileRegistry, fromBinary } from '@bufbuild/protobuf';
import {
  type FileDescriptorSet,
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel as ProtoLevel,
} from '@bufbuild/protobuf/wkt';
import type { Level, PolicyRegistry } from '../policy';
import { lostOptions } from './lost-options';
import type { MethodSource } from './method-source';
import { PolicyError } from './policy-error';
import { POLICY_OPTION, readPolicyOption } from './policy-option';
import { policyRegistry } from './policy-registry';

/** How a descriptor set with all its options is made. */
export const MAKE_DESCRIPTOR_SET =
  'make one with `buf build --as-file-descriptor-set -o set.binpb` or ' +
  '`protoc --include_imports --descriptor_set_out=set.binpb`, and pass its bytes as they are';

/**
 * Reads the policy of every method of a descriptor set: from its `idempotency_level` and its option
 * `(idempotency.v1.policy)`, with the defaults filled in (design 3.1 and 4.1). A set that doesn't declare the option is
 * governed by the levels alone.
 *
 * @param descriptorSet a serialized google.protobuf.FileDescriptorSet with all imports, as `buf build` and
 *   `protoc --include_imports` write it. Only such a set has the options: neither generated code nor a set that went
 *   through another library can be relied on to have kept them.
 * @throws PolicyError that names every setting that can't be used, or tells what is wrong with the set: it can't be read,
 *   lacks an import, or has lost its options on the way
 */
export function loadPolicies(descriptorSet: Uint8Array): PolicyRegistry {
  return policyRegistry(methodsOf(descriptorSet));
}

function methodsOf(descriptorSet: Uint8Array): readonly MethodSource[] {
  const { files, registry } = readDescriptorSet(descriptorSet);
  const lost = lostOptions(files.file, registry);
  if (lost.length > 0) throw new PolicyError(`this descriptor set has lost options; ${MAKE_DESCRIPTOR_SET}:`, lost);
  const extension = registry.getExtension(POLICY_OPTION);
  const services = [...registry.files].flatMap((file) => file.services);
  return services.flatMap(({ methods }) =>
    methods.map((method) => ({
      service: method.parent.typeName,
      method: method.name,
      clientStreaming: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
      serverStreaming: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
      request: method.input,
      read: () => ({ level: levelOf(method), policy: readPolicyOption(method, extension) }),
    })),
  );
}

/**
 * A descriptor set and the descriptors it holds.
 *
 * @throws PolicyError where the bytes are no descriptor set, or one without its imports
 */
function readDescriptorSet(descriptorSet: Uint8Array): {
  readonly files: FileDescriptorSet;
  readonly registry: FileRegistry;
} {
  try {
    const files = fromBinary(FileDescriptorSetSchema, descriptorSet);
    if (files.file.length === 0) throw new Error('it holds no file');
    return { files, registry: createFileRegistry(files) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PolicyError(`this is not a descriptor set with all its imports; ${MAKE_DESCRIPTOR_SET}:`, [reason]);
  }
}

/** A level that this version doesn't know promises nothing that it could rely on. */
function levelOf({ idempotency }: DescMethod): Level {
  if (idempotency === ProtoLevel.NO_SIDE_EFFECTS) return 'NO_SIDE_EFFECTS';
  if (idempotency === ProtoLevel.IDEMPOTENT) return 'IDEMPOTENT';
  return 'UNKNOWN';
}
