import type { Policy } from '../../gen/proto/idempotency/v1/policy';
import { LONGEST_TIMER_MS } from '../longest-timer';
import { type KeyRequirement, type Level, type MethodPolicy, POLICY_DEFAULTS } from '../policy';
import type { MethodSource } from './method-source';
import { askedKey, enforcement, keyFormat, recording } from './policy-modes';
import {
  durationMs,
  LONGEST_KEPT_MS,
  LONGEST_KEY_AGE_MS,
  maxResponseBytes,
  type RefuseSetting,
  refuseUnsupported,
} from './policy-settings';
import { UNKNOWN_REQUEST } from './unknown-request';

/**
 * The rules of one method: what its level decides (design 4.1), what its option adds, and the documented defaults.
 *
 * @param refuse is told of every setting that can't be used; the result is then not to be used either
 */
export function methodPolicy(source: MethodSource, refuse: RefuseSetting): MethodPolicy {
  const { service, method, clientStreaming, serverStreaming, request } = source;
  const { level, policy: option } = source.read(refuse);
  refuseUnsupported(option, refuse);
  if (option.unprotectedStream && !clientStreaming && !serverStreaming) {
    refuse('unprotected_stream', 'a streaming method');
  }
  const policy: MethodPolicy = {
    path: `/${service}/${method}`,
    service,
    method,
    level,
    key: keyRequirement(level, option, refuse),
    keyFormat: keyFormat(option, refuse),
    ...times(option, refuse),
    maxResponseBytes: maxResponseBytes(option.maxResponseBytes, POLICY_DEFAULTS.maxResponseBytes, refuse),
    recording: recording(option, refuse),
    enforcement: enforcement(option, refuse),
    resume: option.resume,
    allowDetached: option.allowDetached,
    unprotectedStream: option.unprotectedStream,
    clientStreaming,
    serverStreaming,
    request: request ?? UNKNOWN_REQUEST,
    requestKnown: request !== undefined,
  };
  if (policy.key === 'IGNORED') refuseWithoutKey(option, policy, refuse);
  return policy;
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

type Times = Pick<MethodPolicy, 'leaseMs' | 'maxExecutionMs' | 'maxKeyAgeMs' | 'retentionMs' | 'maxWaitMs'>;

function times(option: Policy, refuse: RefuseSetting): Times {
  const timed = (byDefaultMs: number) => ({ byDefaultMs, longestMs: LONGEST_TIMER_MS });
  const kept = { byDefaultMs: POLICY_DEFAULTS.retentionMs, longestMs: LONGEST_KEPT_MS };
  const used = {
    ...{ byDefaultMs: POLICY_DEFAULTS.maxKeyAgeMs, longestMs: LONGEST_KEY_AGE_MS },
    since: ', since each of its days is a table',
  };
  const leaseMs = durationMs('lease', option.lease, timed(POLICY_DEFAULTS.leaseMs), refuse);
  const execution = timed(POLICY_DEFAULTS.maxExecutionLeases * leaseMs);
  const maxExecutionMs = durationMs('max_execution', option.maxExecution, execution, refuse);
  const maxKeyAgeMs = durationMs('max_key_age', option.maxKeyAge, used, refuse);
  const retentionMs = durationMs('retention', option.retention, kept, refuse);
  const wait = { ...timed(POLICY_DEFAULTS.maxWaitMs), zero: true };
  const maxWaitMs = durationMs('max_wait', option.maxWait, wait, refuse);
  if (leaseMs >= retentionMs) refuse('lease', `less than the retention, ${retentionMs} ms; got ${leaseMs} ms`);
  if (maxExecutionMs < leaseMs) {
    refuse('max_execution', `at least the lease, ${leaseMs} ms; got ${maxExecutionMs} ms`);
  }
  return { leaseMs, maxExecutionMs, maxKeyAgeMs, retentionMs, maxWaitMs };
}

/**
 * Refuses what has a meaning only under a key. Formats and times of keys may stand on a method that ignores them: so a
 * change of its level is a change of one line.
 */
function refuseWithoutKey(option: Policy, policy: MethodPolicy, refuse: RefuseSetting): void {
  const asked = {
    max_wait: policy.maxWaitMs > 0,
    max_response_bytes: option.maxResponseBytes !== 0,
    recording: policy.recording === 'COMPACT',
    enforcement: policy.enforcement === 'OBSERVE',
    resume: policy.resume,
    allow_detached: policy.allowDetached,
  };
  for (const [setting, isAsked] of Object.entries(asked)) {
    if (isAsked) refuse(setting, 'a method that takes a key; this one ignores it');
  }
}
