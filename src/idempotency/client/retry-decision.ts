import type { StatusObject } from '@grpc/grpc-js';
import type { Level } from '../policy';
import type { ClientSettings } from './client-options';
import { readFailure } from './failure';
import { readRetryAdvice } from './retry-advice';

/** What is known when an attempt has failed. */
export interface RetryFacts {
  readonly level: Level;
  /** Whether the call carries a key that protects it. */
  readonly hasKey: boolean;
  /** How the attempt ended; not OK. */
  readonly status: StatusObject;
  /** Whether it ended because its own time was over. */
  readonly ranOutOfTime: boolean;
  /** Attempts that were sent, this one included. */
  readonly attempts: number;
  /** What is left until the call's overall deadline, milliseconds. */
  readonly remainingMs: number;
}

/**
 * Why no other attempt follows although one might have helped; also the label of the refused-retries metric. `channel`:
 * it could not be started, as on a closed channel.
 */
export type StopReason = 'no_request_id' | 'attempts' | 'pushback' | 'deadline' | 'channel';

/** What to do about a failed attempt. */
export type RetryDecision =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly reason: string }
  /** The status is the answer: another attempt would not change it. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'stop'; readonly why: StopReason };

/** The settings that a decision needs. */
export type RetrySettings = Pick<
  ClientSettings,
  'maxAttempts' | 'initialBackoffMs' | 'backoffMultiplier' | 'maxBackoffMs' | 'random'
>;

/**
 * Decides what follows a failed attempt (design 4.1 and 5). No setting reaches the line that refuses a keyless call of
 * an unknown level.
 */
export function decideRetry(facts: RetryFacts, settings: RetrySettings): RetryDecision {
  const failure = readFailure(facts.status, facts.ranOutOfTime);
  if (failure.kind === 'final') return { kind: 'answer' };
  if (!mayBeSentTwice(facts)) return { kind: 'stop', why: 'no_request_id' };
  if (facts.attempts >= settings.maxAttempts) return { kind: 'stop', why: 'attempts' };
  const advice = readRetryAdvice(facts.status.metadata);
  if (advice.kind === 'stop') return { kind: 'stop', why: 'pushback' };
  const delayMs = advice.kind === 'wait' ? advice.delayMs : backoffMs(facts.attempts, settings);
  if (delayMs >= facts.remainingMs) return { kind: 'stop', why: 'deadline' };
  return { kind: 'retry', delayMs, reason: failure.reason };
}

/** Whether a second arrival of the call is safe: by its level, or by its key. */
export function mayBeSentTwice({ level, hasKey }: Pick<RetryFacts, 'level' | 'hasKey'>): boolean {
  switch (level) {
    case 'NO_SIDE_EFFECTS':
    case 'IDEMPOTENT':
      return true;
    case 'UNKNOWN':
      return hasKey;
  }
}

/** Exponential backoff with full jitter: clients that failed together don't come back together. */
function backoffMs(attempts: number, settings: RetrySettings): number {
  const { initialBackoffMs, backoffMultiplier, maxBackoffMs, random } = settings;
  return random() * Math.min(maxBackoffMs, initialBackoffMs * backoffMultiplier ** (attempts - 1));
}
