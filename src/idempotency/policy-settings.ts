import type { Duration } from '../gen/proto/google/protobuf/duration';
import { Enforcement, type Policy, Recording } from '../gen/proto/idempotency/v1/policy';

/** Takes note of a setting that can't be used: its name in the proto, and what was expected of it. */
export type RefuseSetting = (setting: string, expected: string) => void;

/** The longest wait of a Node timer; a longer one fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

const RECORDINGS: readonly number[] = [Recording.RECORDING_UNSPECIFIED, Recording.RECORDING_FULL];
const ENFORCEMENTS: readonly number[] = [Enforcement.ENFORCEMENT_UNSPECIFIED, Enforcement.ENFORCEMENT_ENFORCE];

/**
 * A duration of the option in milliseconds, or the default where it is not set. Refused are those that are not positive,
 * finer than a millisecond, or longer than `longestMs`; the default then stands in, so that nothing else is blamed.
 */
export function durationMs(
  setting: string,
  duration: Duration | undefined,
  byDefaultMs: number,
  refuse: RefuseSetting,
  longestMs = Number.MAX_SAFE_INTEGER,
): number {
  const ms = duration === undefined ? byDefaultMs : Number(duration.seconds) * 1000 + duration.nanos / 1e6;
  const whole = Number.isInteger(ms) && ms > 0;
  if (whole && ms <= longestMs) return ms;
  refuse(setting, `${whole ? `at most ${longestMs} ms` : 'a positive duration in whole milliseconds'}; got ${ms} ms`);
  return byDefaultMs;
}

/**
 * Refuses by name what the proto can say and this version doesn't carry out. To run without it would break what the
 * contract promises its callers.
 */
export function refuseUnsupported(option: Policy, refuse: RefuseSetting): void {
  const notYet = (setting: string, expected: string): void => {
    refuse(setting, `${expected}; this version can't carry out more`);
  };
  if (option.maxWait !== undefined && (option.maxWait.seconds !== 0n || option.maxWait.nanos !== 0)) {
    notYet('max_wait', '0 s');
  }
  if (option.maxResponseBytes !== 0) notYet('max_response_bytes', 'the default');
  if (!RECORDINGS.includes(option.recording)) notYet('recording', 'FULL');
  if (!ENFORCEMENTS.includes(option.enforcement)) notYet('enforcement', 'ENFORCE');
  if (option.resume) notYet('resume', 'false');
  if (option.allowDetached) notYet('allow_detached', 'false');
  for (const tag of Object.keys(option._unknownFields ?? {})) {
    refuse(`field ${Number(tag) >>> 3}`, 'a setting that this version knows');
  }
}
