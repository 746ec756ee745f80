import { type Metadata, status } from '@grpc/grpc-js';
import { isReservedTrailer, isSingleValueTrailer } from './wire/metadata';

/** `ErrorInfo.domain` of every refusal of this package. */
export const ERROR_DOMAIN = 'idempotency.v1';

/** What the caller is told about retrying: never, or after a while. */
export type RetryHint = 'never' | 'later';

/**
 * Every refusal there is: its gRPC code and its retry hint (design 3.3). The codes are ones that the gRPC library never
 * makes by itself (gRFC A54), but for UNAVAILABLE, whose meaning is the same whoever says it.
 */
export const REFUSALS = {
  REQUEST_ID_MISSING: { code: status.INVALID_ARGUMENT, hint: 'never' },
  REQUEST_ID_MALFORMED: { code: status.INVALID_ARGUMENT, hint: 'never' },
  REQUEST_ID_FROM_FUTURE: { code: status.INVALID_ARGUMENT, hint: 'never' },
  REQUEST_ID_EXPIRED: { code: status.FAILED_PRECONDITION, hint: 'never' },
  REQUEST_ID_REUSED: { code: status.FAILED_PRECONDITION, hint: 'never' },
  REQUEST_IN_PROGRESS: { code: status.ABORTED, hint: 'later' },
  CLAIM_LOST: { code: status.ABORTED, hint: 'later' },
  RESPONSE_NOT_RECORDED: { code: status.ALREADY_EXISTS, hint: 'never' },
  REQUEST_PARKED: { code: status.FAILED_PRECONDITION, hint: 'never' },
  KEYLESS_RETRY: { code: status.FAILED_PRECONDITION, hint: 'never' },
  STORE_UNAVAILABLE: { code: status.UNAVAILABLE, hint: 'later' },
  PRINCIPAL_MISSING: { code: status.UNAUTHENTICATED, hint: 'never' },
} as const satisfies Record<string, { readonly code: status; readonly hint: RetryHint }>;

/** `ErrorInfo.reason` of a refusal. Upper snake case, part of the contract. */
export type RefusalReason = keyof typeof REFUSALS;

/** One thing wrong with one field, as in google.rpc.BadRequest. */
export interface FieldViolation {
  /** Path of the field within the request, or the name of a metadata entry. */
  readonly field: string;
  /** What was expected. */
  readonly description: string;
}

/** A call that is answered with an error of ours instead of being run. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** For the engineer who reads it: names the thing and the next step. Never holds a key or anything internal. */
  readonly message: string;
  /**
   * The least wait before the next attempt, milliseconds; only where the reason's hint is `later`. Left out there, the
   * caller is asked to stop all the same.
   */
  readonly retryAfterMs?: number;
  /** What the answer is about, once the running attempt has said so. */
  readonly resource?: string;
  /** What is wrong with the call, where that can be named. */
  readonly violations?: readonly FieldViolation[];
}

/** Why a call was refused, for programs, as in google.rpc.ErrorInfo. */
export interface ErrorInfo {
  /** Upper snake case, unique within the domain. */
  readonly reason: string;
  /** Who defines the reason, such as `payments.v1`. */
  readonly domain: string;
  /** What the reason is about. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * What callers are told about sending the same call again by themselves: never, whatever the policy of their channel
 * retries; or after so long. It goes out as `grpc-retry-pushback-ms` (gRFC A6), the wait as google.rpc.RetryInfo too.
 */
export type RetryWish = 'never' | { readonly afterMs: number };

/**
 * What a handler throws to answer with a status. Thrown inside or outside `complete`, it rolls back and frees the key,
 * so that a corrected call may use the same one. Anything else that is thrown becomes INTERNAL with a fixed text.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  /** For the caller. Half a surrogate pair, which no wire carries, is replaced. */
  readonly details: string;

  /**
   * @param code gRPC status code, not OK
   * @param details text for the caller; it leaves the process, so nothing internal belongs in it
   * @param violations the fields at fault, sent as google.rpc.BadRequest
   * @param info why, for programs, sent as google.rpc.ErrorInfo
   * @param retry whether the same call may be sent again. Default: nothing is said, and callers go by the code
   * @throws TypeError for the code OK and for what is no code, and for a wait that is none
   */
  constructor(
    readonly code: status,
    details: string,
    readonly violations: readonly FieldViolation[] = [],
    readonly info?: ErrorInfo,
    readonly retry?: RetryWish,
  ) {
    const sendable = details.toWellFormed();
    super(`${status[code]}: ${sendable}`);
    this.details = sendable;
    if (code === status.OK) throw new TypeError('StatusError needs an error code; return the answer instead');
    if (typeof code !== 'number' || status[code] === undefined) {
      throw new TypeError('code: expected one of the gRPC status codes, a number from 1 to 16');
    }
    if (typeof retry === 'object' && !isWait(retry.afterMs)) {
      throw new TypeError('retry.afterMs: expected milliseconds, 0 or more');
    }
  }
}

function isWait(ms: number): boolean {
  return ms >= 0 && Number.isSafeInteger(Math.ceil(ms));
}

/** Why `attempt.signal` fired: this attempt can't complete any more. Whatever it does, it changes nothing. */
export class ClaimLostError extends Error {
  override readonly name = 'ClaimLostError';
}

/**
 * A final refusal: what `complete` returns to have a status recorded and replayed like an answer ("card declined"). A
 * `StatusError` that is thrown instead rolls back and frees the key.
 */
export class Rejection {
  constructor(
    readonly error: StatusError,
    readonly trailers?: Metadata,
  ) {}
}

/**
 * Makes the status of an error the recorded answer: `return reject(new StatusError(…))`. Its `retry: 'never'` is recorded
 * and replayed with it.
 *
 * @param trailers recorded and replayed with it, such as binary details of the service's own; those of google.rpc
 *   take the place of the ones made of the error's fields
 * @throws TypeError that names a trailer which is not a service's to set, or of which HTTP/2 carries one value only; for
 *   an error that asks to come again, since all who do are told the same
 */
export function reject(error: StatusError, trailers?: Metadata): Rejection {
  if (typeof error.retry === 'object') {
    throw new TypeError('a recorded rejection stays: retry.afterMs is for what is thrown');
  }
  const names = Object.keys(trailers?.getMap() ?? {});
  const reserved = names.filter(isReservedTrailer);
  if (reserved.length > 0) throw new TypeError(`trailers that a service can't set: ${reserved.join(', ')}`);
  const repeated = names.filter((name) => isSingleValueTrailer(name) && (trailers?.get(name).length ?? 0) > 1);
  if (repeated.length > 0) throw new TypeError(`trailers of one value at most: ${repeated.join(', ')}`);
  return new Rejection(error, trailers);
}

/** INVALID_ARGUMENT that names every field at fault at once. */
export function invalidArgument(violations: readonly FieldViolation[]): StatusError {
  const text = violations.map(({ field, description }) => `${field}: ${description}`).join('; ');
  return new StatusError(status.INVALID_ARGUMENT, text, violations);
}
