import type { CallLimits } from './call-limits';
import { isTimeoutMs } from './check-options';

/** The times of one call, where they are not those of its method. */
export interface CallTimes {
  /** Time for the call with all its attempts; more than 0, at most that of the client, which is also the default. */
  readonly timeoutMs?: number | undefined;
  /** Time for one attempt of a call that may be retried; more than 0, at most that for the call. Default: the client's. */
  readonly attemptTimeoutMs?: number | undefined;
}

/**
 * Checks the times of a call against the limits of its method.
 *
 * @throws TypeError that names what is at fault and what was expected
 */
export function checkTimes(
  { timeoutMs, attemptTimeoutMs }: CallTimes,
  limits: CallLimits,
): CallTimes & { readonly timeoutMs: number } {
  const wholeMs = timeoutMs ?? limits.timeoutMs;
  if (!isTimeoutMs(wholeMs) || wholeMs > limits.timeoutMs) {
    throw new TypeError(`timeoutMs: expected more than 0 and at most the client's ${limits.timeoutMs}, got ${wholeMs}`);
  }
  if (attemptTimeoutMs !== undefined && !(isTimeoutMs(attemptTimeoutMs) && attemptTimeoutMs <= wholeMs)) {
    throw new TypeError(
      `attemptTimeoutMs: expected more than 0 and at most timeoutMs (${wholeMs}), got ${attemptTimeoutMs}`,
    );
  }
  return { timeoutMs: wholeMs, attemptTimeoutMs };
}
