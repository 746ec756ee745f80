import { performance } from 'node:perf_hooks';
import { type InterceptorOptions, propagate } from '@grpc/grpc-js';

/** A moment on a clock that nobody sets. */
export class Deadline {
  /** @param endsAt by `performance.now()` */
  constructor(private readonly endsAt: number) {}

  /** What is left, milliseconds; 0 or less once it is over. */
  remainingMs(): number {
    return this.endsAt - performance.now();
  }
}

/** The deadline that is so many milliseconds from now. */
export function deadlineIn(milliseconds: number): Deadline {
  return new Deadline(performance.now() + milliseconds);
}

/**
 * The overall deadline of a call that starts now: `timeoutMs`, or the deadline its caller gave it, or that of the call
 * it serves, whichever is soonest.
 */
export function callDeadline(options: InterceptorOptions, timeoutMs: number): Deadline {
  const now = Date.now();
  const ownMs = options.deadline === undefined ? Infinity : Number(options.deadline) - now;
  const parent = inheritedParent(options, propagate.DEADLINE);
  const parentMs = parent === undefined ? Infinity : Number(parent.getDeadline()) - now;
  return deadlineIn(Math.min(timeoutMs, ownMs, parentMs));
}

/** Whether the call that this one serves is over, so that nobody waits for the answer. */
export function isParentCancelled(options: InterceptorOptions): boolean {
  return inheritedParent(options, propagate.CANCELLATION)?.cancelled ?? false;
}

function inheritedParent(options: InterceptorOptions, what: propagate): InterceptorOptions['parent'] {
  return ((options.propagate_flags ?? propagate.DEFAULTS) & what) === 0 ? undefined : options.parent;
}
