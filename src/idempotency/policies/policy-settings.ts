import type { Duration } from '../../gen/proto/google/protobuf/duration';
import type { Policy } from '../../gen/proto/idempotency/v1/policy';

/** Takes note of a setting that can't be used: its name in the proto, and what was expected of it. */
export type RefuseSetting = (setting: string, expected: string) => void;

/** A hundred years: beyond it dates leave what JavaScript and Postgres can both write. */
export const LONGEST_KEPT_MS = 100 * 365 * 24 * 3_600_000;

/** Three years and a leap day: every day of it has a table, and a process makes the missing ones before it serves. */
export const LONGEST_KEY_AGE_MS = 1_096 * 24 * 3_600_000;

/** An answer is read from the database as hexadecimal text, and a string of Node ends at half a gigabyte. */
const LARGEST_RESPONSE_BYTES = 128 * 1024 * 1024;

/** What a duration of the option may be. */
export interface DurationLimits {
  /** What it is where the option doesn't say, milliseconds. */
  readonly byDefaultMs: number;
  /** The longest, milliseconds. */
  readonly longestMs: number;
  /** Why not longer, as an end of that sentence. Default: not said. */
  readonly since?: string;
  /** Whether zero is one. Default false. */
  readonly zero?: boolean;
}

/**
 * A duration of the option in milliseconds, or the default where it is not set. Refused are those that are not positive,
 * finer than a millisecond, or longer than allowed; the default then stands in, so that nothing else is blamed.
 */
export function durationMs(
  setting: string,
  duration: Duration | undefined,
  { byDefaultMs, longestMs, since = '', zero = false }: DurationLimits,
  refuse: RefuseSetting,
): number {
  const ms = duration === undefined ? byDefaultMs : Number(duration.seconds) * 1000 + duration.nanos / 1e6;
  const whole = Number.isInteger(ms) && (ms > 0 || (zero && ms === 0));
  if (whole && ms <= longestMs) return ms;
  const kind = `${zero ? 'zero or ' : ''}a positive duration in whole milliseconds`;
  refuse(setting, `${whole ? `at most ${longestMs} ms${since}` : kind}; got ${ms} ms`);
  return byDefaultMs;
}

/** The largest answer that is recorded, bytes; 0 in the proto is the default. */
export function maxResponseBytes(asked: number, byDefault: number, refuse: RefuseSetting): number {
  if (asked === 0) return byDefault;
  if (asked <= LARGEST_RESPONSE_BYTES) return asked;
  refuse('max_response_bytes', `at most ${LARGEST_RESPONSE_BYTES}; got ${asked}`);
  return byDefault;
}

/**
 * Refuses by number what the proto says and this version doesn't know. To run without it would break what the contract
 * promises its callers.
 */
export function refuseUnsupported(option: Policy, refuse: RefuseSetting): void {
  for (const tag of Object.keys(option._unknownFields ?? {})) {
    refuse(`field ${Number(tag) >>> 3}`, 'a setting that this version knows');
  }
}
