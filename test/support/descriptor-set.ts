import {
  clone,
  create,
  createFileRegistry,
  fromBinary,
  getExtension,
  hasExtension,
  type Message,
  setExtension,
  toBinary,
} from '@bufbuild/protobuf';
import {
  type Duration,
  DurationSchema,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
  type MethodOptions,
  MethodOptions_IdempotencyLevel,
  MethodOptionsSchema,
} from '@bufbuild/protobuf/wkt';
import { descriptorSet } from '../../src/gen/descriptor-set';

/** What may be changed of a method: its level, or durations of its policy in milliseconds. */
export interface MethodChange {
  readonly level?: 'NO_SIDE_EFFECTS' | 'IDEMPOTENT' | 'IDEMPOTENCY_UNKNOWN';
  readonly leaseMs?: number;
  readonly maxKeyAgeMs?: number;
  readonly retentionMs?: number;
}

/** A copy of this package's protos in which only the named methods' options differ. */
export function changedDescriptorSet(changes: Readonly<Record<string, MethodChange>>): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  for (const [name, change] of Object.entries(changes)) {
    const method = set.file.flatMap(({ service }) => service).flatMap((service) => service.method);
    const found = method.find((candidate) => candidate.name === name);
    if (found === undefined) throw new Error(`no method ${name}`);
    found.options = changedOptions(set, found.options, change);
  }
  return toBinary(FileDescriptorSetSchema, set);
}

/** A copy of this package's protos without one method. */
export function descriptorSetWithout(methodName: string): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  for (const service of set.file.flatMap((file) => file.service)) {
    service.method = service.method.filter(({ name }) => name !== methodName);
  }
  return toBinary(FileDescriptorSetSchema, set);
}

function changedOptions(
  set: FileDescriptorSet,
  options: MethodOptions | undefined,
  change: MethodChange,
): MethodOptions {
  const changed = options === undefined ? create(MethodOptionsSchema) : clone(MethodOptionsSchema, options);
  if (change.level !== undefined) changed.idempotencyLevel = MethodOptions_IdempotencyLevel[change.level];
  const durations = Object.entries({
    lease: change.leaseMs,
    maxKeyAge: change.maxKeyAgeMs,
    retention: change.retentionMs,
  }).filter((entry): entry is [string, number] => entry[1] !== undefined);
  // Without a key nothing can be resumed.
  const takesNoKey = change.level !== undefined && change.level !== 'IDEMPOTENCY_UNKNOWN';
  if (durations.length === 0 && !takesNoKey) return changed;
  const registry = createFileRegistry(set);
  const extension = registry.getExtension('idempotency.v1.policy');
  const policy = registry.getMessage('idempotency.v1.Policy');
  if (extension === undefined || policy === undefined) throw new Error('the set has no policy option');
  // What is not changed is as it was said.
  const said = hasExtension(changed, extension) ? (getExtension(changed, extension) as Message) : create(policy);
  const values = Object.fromEntries(durations.map(([name, ms]) => [name, duration(ms)]));
  setExtension(changed, extension, Object.assign(said, values, takesNoKey ? { resume: false } : {}));
  return changed;
}

function duration(ms: number): Duration {
  return create(DurationSchema, { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 });
}
