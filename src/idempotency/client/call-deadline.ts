import type { EventEmitter } from 'node:events';
import { performance } from 'node:perf_hooks';
import { type InterceptorOptions, propagate } from '@grpc/grpc-js';

/** Milliseconds by the clock that deadlines are on, which nobody sets. */
export function monotonicNow(): number {
  return performance.now();
}

/** A moment on that clock. */
export class Deadline {
  /** @param endsAt by `monotonicNow` */
  constructor(private readonly endsAt: number) {}

  /**
   * What is left, milliseconds; 0 or less once it is over.
   *
   * @param now by `monotonicNow`
   */
  remainingMs(now = monotonicNow()): number {
    return this.endsAt - now;
  }
}

/** What has no end. */
export const NEVER = new Deadline(Infinity);

/** The deadline that is so many milliseconds from now. */
export function deadlineIn(milliseconds: number, now = monotonicNow()): Deadline {
  return new Deadline(now + milliseconds);
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
  return parentThatMayCancel(options)?.cancelled ?? false;
}

/** The call that this one serves, and is cancelled with; it emits `cancelled` then. */
export function parentThatMayCancel(
  options: InterceptorOptions,
): (EventEmitter & { readonly cancelled: boolean }) | undefined {
  return inheritedParent(options, propagate.CANCELLATION);
}

function inheritedParent(options: InterceptorOptions, what: propagate): InterceptorOptions['parent'] {
  return ((options.propagate_flags ?? propagate.DEFAULTS) & what) === 0 ? undefined : options.parent;
}
