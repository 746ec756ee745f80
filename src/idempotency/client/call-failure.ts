import { status, type StatusObject } from '@grpc/grpc-js';
import { ERROR_DOMAIN } from '../errors';
import type { StopReason } from '../events';
import type { Level } from '../policy';
import { readErrorDetails } from '../wire/error-details';
import { readReplayed } from './call-end';
import { hasNoHeaders } from './failure';

/**
 * Why a call ended without success.
 *
 * - `answer`: with an error that another attempt would not change
 * - `cancelled`: by its caller, or with the call on whose behalf it was made
 * - `unserializable`: its request does not fit its type; nothing was sent
 * - the others: another attempt might have helped, and none was allowed
 */
export type FailureReason = 'answer' | 'cancelled' | 'unserializable' | StopReason;

/** What is known of a call that failed, beside the status itself. A plain grpc-js error has these fields too. */
export interface CallFailure {
  /** Attempts that were begun; 0 where nothing was sent. */
  readonly attempts: number;
  readonly why: FailureReason;
  /**
   * Whether the call may have taken effect all the same. Never of a method without side effects. It errs on the side of
   * true: what a server has not clearly said is unknown.
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
  /** How the last attempt ended. */
  readonly status: StatusObject;
  /** Whether an attempt before the last one may have taken effect. */
  readonly maybeDoneBefore: boolean;
  /** Whether level or key let the call be sent again. */
  readonly mayBeSentTwice: boolean;
}

/** Says what is known of a call that failed. */
export function callFailure(call: FailedCall): CallFailure {
  const { attempts, why, requestId } = call;
  const hidden = mayHideSuccess(call.status) || (call.maybeDoneBefore && !isOfTheRecord(call.status));
  return {
    attempts,
    why,
    outcomeUnknown: attempts > 0 && call.level !== 'NO_SIDE_EFFECTS' && hidden,
    requestId,
    retriable: call.mayBeSentTwice && canEndOtherwise(why),
  };
}

/** Whether a failed attempt may have taken effect: all but those that the server clearly refused. */
export function mayHideSuccess(failed: StatusObject): boolean {
  switch (failed.code) {
    case status.INVALID_ARGUMENT:
    case status.NOT_FOUND:
    case status.ALREADY_EXISTS:
    case status.PERMISSION_DENIED:
    case status.FAILED_PRECONDITION:
    case status.OUT_OF_RANGE:
    case status.UNIMPLEMENTED:
    case status.UNAUTHENTICATED:
      return false;
    case status.ABORTED:
      // Of the key that runs elsewhere nothing is known yet.
      return readErrorDetails(failed.metadata).domain === ERROR_DOMAIN;
    case status.RESOURCE_EXHAUSTED:
      // This side says so too, of an answer that is too large for it.
      return hasNoHeaders(failed);
    case status.OK:
    case status.CANCELLED:
    case status.UNKNOWN:
    case status.DEADLINE_EXCEEDED:
    case status.INTERNAL:
    case status.UNAVAILABLE:
    case status.DATA_LOSS:
      return true;
    default:
      return true;
  }
}

/** Whether an error was read from the record of the key, so that it tells of earlier attempts too. */
function isOfTheRecord({ metadata }: StatusObject): boolean {
  if (readReplayed(metadata)) return true;
  const { domain, reason } = readErrorDetails(metadata);
  return domain === ERROR_DOMAIN && reason === 'RESPONSE_NOT_RECORDED';
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
      return false;
  }
}
