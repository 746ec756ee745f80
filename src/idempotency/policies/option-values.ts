import {
  enforcementFromJSON,
  keyFormatFromJSON,
  keyRequirementFromJSON,
  Policy,
  recordingFromJSON,
} from '../../gen/proto/idempotency/v1/policy';
import type { Duration } from '../../gen/proto/google/protobuf/duration';
import type { RefuseSetting } from './policy-settings';

/** Writes one setting into a policy; says what was expected where the value is none. */
type Reader = (policy: Policy, value: unknown) => string | undefined;

const READERS: Readonly<Record<string, Reader>> = {
  key: (policy, value) => enumValue(value, keyRequirementFromJSON, (read) => (policy.key = read)),
  key_format: (policy, value) => enumValue(value, keyFormatFromJSON, (read) => (policy.keyFormat = read)),
  lease: (policy, value) => duration(value, (read) => (policy.lease = read)),
  max_execution: (policy, value) => duration(value, (read) => (policy.maxExecution = read)),
  max_key_age: (policy, value) => duration(value, (read) => (policy.maxKeyAge = read)),
  retention: (policy, value) => duration(value, (read) => (policy.retention = read)),
  max_wait: (policy, value) => duration(value, (read) => (policy.maxWait = read)),
  max_response_bytes: (policy, value) => {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) return 'a whole number';
    policy.maxResponseBytes = value;
    return undefined;
  },
  recording: (policy, value) => enumValue(value, recordingFromJSON, (read) => (policy.recording = read)),
  enforcement: (policy, value) => enumValue(value, enforcementFromJSON, (read) => (policy.enforcement = read)),
  resume: (policy, value) => flag(value, (read) => (policy.resume = read)),
  allow_detached: (policy, value) => flag(value, (read) => (policy.allowDetached = read)),
  unprotected_stream: (policy, value) => flag(value, (read) => (policy.unprotectedStream = read)),
};

/**
 * A policy as proto-loader has it: the text of the proto, parsed but not checked. Enums are names, durations are objects,
 * and a misspelt setting is there under its misspelt name.
 *
 * @param texts the values of the option; more than one where its spellings are mixed, each setting in one of them
 */
export function readOptionValues(texts: readonly unknown[], refuse: RefuseSetting): Policy {
  const policy = Policy.create();
  for (const text of texts) {
    if (!isObject(text)) {
      refuse('the option', `a message; got ${String(text)}`);
      continue;
    }
    for (const [setting, value] of Object.entries(text)) {
      const read = Object.hasOwn(READERS, setting) ? READERS[setting] : undefined;
      const expected = read === undefined ? 'a setting that this version knows' : read(policy, value);
      if (expected !== undefined) refuse(setting, `${expected}; got ${JSON.stringify(value)}`);
    }
  }
  return policy;
}

function enumValue<Value extends number>(
  value: unknown,
  read: (value: unknown) => Value,
  write: (value: Value) => void,
): string | undefined {
  const known = read(value);
  // What the generated code reads a name or a number as that it doesn't know.
  if (known === -1) return 'a value that this version knows';
  write(known);
  return undefined;
}

function duration(value: unknown, write: (value: Duration) => void): string | undefined {
  const { seconds = 0, nanos = 0, ...rest } = isObject(value) ? value : { rest: value };
  const whole = [seconds, nanos].every((part) => Number.isInteger(part));
  if (!whole || Object.keys(rest).length > 0) return 'a duration of whole seconds and nanos';
  // Beyond 2^53 it is not exact any more, and refused for being too long.
  write({ seconds: BigInt(seconds as number), nanos: nanos as number });
  return undefined;
}

function flag(value: unknown, write: (value: boolean) => void): string | undefined {
  if (typeof value !== 'boolean') return 'true or false';
  write(value);
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
