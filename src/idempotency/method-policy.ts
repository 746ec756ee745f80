import type { DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as ProtoLevel } from '@bufbuild/protobuf/wkt';
import {
  KeyFormat as ProtoKeyFormat,
  KeyRequirement as ProtoKey,
  type Policy,
} from '../gen/proto/idempotency/v1/policy';
import { type KeyFormat, type KeyRequirement, type Level, type MethodPolicy, POLICY_DEFAULTS } from './policy';
import { durationMs, LONGEST_TIMER_MS, type RefuseSetting, refuseUnsupported } from './policy-settings';

/**
 * The rules of one method: what its level decides (design 4.1), what its option adds, and the documented defaults.
 *
 * @param refuse is told of every setting that can't be used; the result is then not to be used either
 */
export function methodPolicy(method: DescMethod, option: Policy, refuse: RefuseSetting): MethodPolicy {
  refuseUnsupported(option, refuse);
  const service = method.parent.typeName;
  const clientStreaming = method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming';
  const serverStreaming = method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming';
  if (option.unprotectedStream && !clientStreaming && !serverStreaming) {
    refuse('unprotected_stream', 'a streaming method');
  }
  const level = levelOf(method);
  const leaseMs = durationMs('lease', option.lease, POLICY_DEFAULTS.leaseMs, refuse, LONGEST_TIMER_MS);
  const retentionMs = durationMs('retention', option.retention, POLICY_DEFAULTS.retentionMs, refuse);
  if (leaseMs >= retentionMs) refuse('lease', `less than the retention, ${retentionMs} ms; got ${leaseMs} ms`);
  const tenLeasesMs = POLICY_DEFAULTS.maxExecutionLeases * leaseMs;
  return {
    path: `/${service}/${method.name}`,
    service,
    method: method.name,
    level,
    key: keyRequirement(level, option, refuse),
    keyFormat: keyFormat(option, refuse),
    leaseMs,
    maxExecutionMs: durationMs('max_execution', option.maxExecution, tenLeasesMs, refuse, LONGEST_TIMER_MS),
    maxKeyAgeMs: durationMs('max_key_age', option.maxKeyAge, POLICY_DEFAULTS.maxKeyAgeMs, refuse),
    retentionMs,
    maxWaitMs: POLICY_DEFAULTS.maxWaitMs,
    maxResponseBytes: POLICY_DEFAULTS.maxResponseBytes,
    recording: 'FULL',
    enforcement: 'ENFORCE',
    resume: false,
    allowDetached: false,
    unprotectedStream: option.unprotectedStream,
    clientStreaming,
    serverStreaming,
    request: method.input,
  };
}

/** A level that this version doesn't know promises nothing that it could rely on. */
function levelOf({ idempotency }: DescMethod): Level {
  if (idempotency === ProtoLevel.NO_SIDE_EFFECTS) return 'NO_SIDE_EFFECTS';
  if (idempotency === ProtoLevel.IDEMPOTENT) return 'IDEMPOTENT';
  return 'UNKNOWN';
}

function keyRequirement(level: Level, option: Policy, refuse: RefuseSetting): KeyRequirement {
  const asked = askedKey(option, refuse);
  const takesKey = asked === 'REQUIRED' || asked === 'OPTIONAL';
  if (takesKey && level === 'NO_SIDE_EFFECTS') {
    refuse('key', `no key, since the method has no side effects; got ${asked}`);
  }
  if (takesKey && option.unprotectedStream) refuse('key', `no key, since unprotected_stream is set; got ${asked}`);
  if (asked !== undefined) return asked;
  return level === 'UNKNOWN' && !option.unprotectedStream ? 'REQUIRED' : 'IGNORED';
}

function askedKey({ key }: Policy, refuse: RefuseSetting): KeyRequirement | undefined {
  switch (key) {
    case ProtoKey.KEY_REQUIREMENT_UNSPECIFIED:
      return undefined;
    case ProtoKey.KEY_REQUIREMENT_REQUIRED:
      return 'REQUIRED';
    case ProtoKey.KEY_REQUIREMENT_OPTIONAL:
      return 'OPTIONAL';
    case ProtoKey.KEY_REQUIREMENT_IGNORED:
      return 'IGNORED';
    case ProtoKey.UNRECOGNIZED:
    default:
      refuse('key', `a value that this version knows; got ${key}`);
      return undefined;
  }
}

function keyFormat({ keyFormat: format }: Policy, refuse: RefuseSetting): KeyFormat {
  switch (format) {
    case ProtoKeyFormat.KEY_FORMAT_UNSPECIFIED:
    case ProtoKeyFormat.KEY_FORMAT_UUID:
      return 'UUID';
    case ProtoKeyFormat.KEY_FORMAT_UUID_V7:
      return 'UUID_V7';
    case ProtoKeyFormat.KEY_FORMAT_OPAQUE:
      return 'OPAQUE';
    case ProtoKeyFormat.UNRECOGNIZED:
    default:
      refuse('key_format', `a value that this version knows; got ${format}`);
      return 'UUID';
  }
}
