import type { StatusObject } from '@grpc/grpc-js';
import type { RetryReason, StopReason } from '../events';
import type { Level } from '../policy';
import type { CallLimits } from './call-limits';
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
  /** What is left until the key may not be sent any more, milliseconds; Infinity where there is no such end. */
  readonly keyRemainingMs: number;
  /** What the retry budget of the target holds. */
  readonly budgetTokens: number;
}

/** What to do about a failed attempt. */
export type RetryDecision =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly reason: RetryReason }
  /** The status is the answer: another attempt would not change it. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'stop'; readonly why: StopReason };

/** The settings that a decision needs. */
export type RetrySettings = Pick<CallLimits, 'maxAttempts'> &
  Pick<ClientSettings, 'initialBackoffMs' | 'backoffMultiplier' | 'maxBackoffMs' | 'random'>;

/**
 * Decides what follows a failed attempt (design 4.1 and 5). No setting reaches the line that refuses a keyless call of
 * an unknown level.
 */
export function decideRetry(facts: RetryFacts, settings: RetrySettings): RetryDecision {
  const failure = readFailure(facts.status, facts.ranOutOfTime);
  if (failure.kind === 'final') return { kind: 'answer' };
  if (!mayBeSentTwice(facts.level, facts.hasKey)) return { kind: 'stop', why: 'no_request_id' };
  if (facts.attempts >= settings.maxAttempts) return { kind: 'stop', why: 'attempts' };
  const advice = readRetryAdvice(facts.status.metadata);
  if (advice.kind === 'stop') return advice;
  const delayMs = advice.kind === 'wait' ? advice.delayMs : backoffMs(facts.attempts, settings);
  const endsFirst = facts.keyRemainingMs <= facts.remainingMs ? 'key_expired' : 'deadline';
  if (delayMs >= Math.min(facts.keyRemainingMs, facts.remainingMs)) return { kind: 'stop', why: endsFirst };
  if (facts.budgetTokens < 1) return { kind: 'stop', why: 'budget' };
  return { kind: 'retry', delayMs, reason: failure.reason };
}

/** Whether a second arrival of the call is safe: by its level, or by its key. */
export function mayBeSentTwice(level: Level, hasKey: boolean): boolean {
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
