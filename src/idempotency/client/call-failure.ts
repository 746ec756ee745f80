import type { StatusObject } from '@grpc/grpc-js';
import type { StopReason } from '../events';
import type { Level } from '../policy';
import { isOfTheRecord, mayHideSuccess } from './hidden-success';

/**
 * Why a call ended without success.
 *
 * - `answer`: with an error that another attempt would not change
 * - `cancelled`: by its caller, or with the call on whose behalf it was made
 * - `unserializable`: its request does not fit its type; nothing was sent
 * - `unusable_key`: its key can't be one; nothing was sent
 * - the others: another attempt might have helped, and none was allowed
 */
export type FailureReason = 'answer' | 'cancelled' | 'unserializable' | 'unusable_key' | StopReason;

/** What is known of a call that failed, beside the status itself. A plain grpc-js error has these fields too. */
export interface CallFailure {
  /** Attempts that were begun; 0 where nothing was sent. */
  readonly attempts: number;
  readonly why: FailureReason;
  /**
   * Whether the call, or another one under its key, may have taken effect all the same: then it must not be done anew under
   * a new key before that is found out. Never of a method without side effects. It errs on the side of true: what a server
   * has not clearly said is unknown. What it means after each refusal is in `docs/clients.md`.
   */
  readonly outcomeUnknown: boolean;
  /** The key that was sent: ask again with this one. Undefined where there was none that can be used. */
  readonly requestId: string | undefined;
  /** Whether the same call, with the same key, may be sent again later and may then succeed. */
  readonly retriable: boolean;
}

/** What a failed call left behind. */
export interface FailedCall {
  readonly level: Level;
  /** The key, where the call has one that protects it. */
  readonly requestId: string | undefined;
  readonly attempts: number;
  readonly why: FailureReason;
  /** How the last attempt ended; undefined where the call ended between two, and those before tell. */
  readonly status: StatusObject | undefined;
  /** Whether an attempt before that one may have taken effect. */
  readonly maybeDoneBefore: boolean;
  /** Whether level or key let the call be sent again. */
  readonly mayBeSentTwice: boolean;
}

/** Says what is known of a call that failed. */
export function callFailure(call: FailedCall): CallFailure {
  const { attempts, why, requestId, status } = call;
  const hidden =
    status === undefined
      ? call.maybeDoneBefore
      : mayHideSuccess(status) || (call.maybeDoneBefore && !isOfTheRecord(status));
  return {
    attempts,
    why,
    outcomeUnknown: attempts > 0 && call.level !== 'NO_SIDE_EFFECTS' && hidden,
    requestId,
    retriable: call.mayBeSentTwice && canEndOtherwise(why),
  };
}

function canEndOtherwise(why: FailureReason): boolean {
  switch (why) {
    case 'attempts':
    case 'budget':
    case 'deadline':
    case 'channel':
    case 'cancelled':
    case 'unreadable':
      return true;
    case 'answer':
    case 'pushback':
    case 'key_expired':
    case 'no_request_id':
    case 'unserializable':
    case 'unusable_key':
      return false;
  }
}
