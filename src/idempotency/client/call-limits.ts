import type { InterceptorOptions } from '@grpc/grpc-js';

/** How long and how often a call may try. */
export interface CallLimits {
  /** Time for a call with all its attempts and waits, milliseconds. */
  readonly timeoutMs: number;
  /** Time for one attempt of a call that may be retried, milliseconds. */
  readonly attemptTimeoutMs: number;
  /** Attempts of one call, the first included. */
  readonly maxAttempts: number;
}

/** Under this the options of a grpc-js call carry the attempt timeout of that call, milliseconds. */
export const ATTEMPT_TIMEOUT_MS: unique symbol = Symbol('attemptTimeoutMs');

/** The options of a call, as the typed client fills them in. grpc-js and interceptors copy them with all they hold. */
export type LimitedOptions<Options> = Options & { readonly [ATTEMPT_TIMEOUT_MS]?: number };

/** The limits of one call: those of its method, with what the call itself says. */
export function limitsOfCall(limits: CallLimits, options: LimitedOptions<InterceptorOptions>): CallLimits {
  const attemptTimeoutMs = options[ATTEMPT_TIMEOUT_MS];
  return attemptTimeoutMs === undefined ? limits : { ...limits, attemptTimeoutMs };
}
