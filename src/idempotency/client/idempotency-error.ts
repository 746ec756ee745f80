import type { Metadata, ServiceError, status } from '@grpc/grpc-js';
import { readExpiry, readReplayed } from './call-end';
import type { CallFailure, FailureReason } from './call-failure';

/**
 * What a call of the typed client rejects with: the last real error, with its code, text and trailers, and what is known
 * of the call. Wherever a grpc-js `ServiceError` is expected, this is one.
 *
 * `message` is for engineers and never holds the key; `requestId` does.
 */
export class IdempotencyError extends Error implements ServiceError, CallFailure {
  override readonly name = 'IdempotencyError';
  readonly code: status;
  /** The text of the server, and why no other attempt followed. */
  readonly details: string;
  /** The trailers of the server: `readErrorDetails` reads them. */
  readonly metadata: Metadata;
  /** Whether the error was recorded by an earlier attempt. */
  readonly replayed: boolean;
  /** Until when it is kept at least; undefined where it is not. */
  readonly expiresAt: Date | undefined;
  readonly attempts: number;
  readonly why: FailureReason;
  readonly outcomeUnknown: boolean;
  readonly requestId: string | undefined;
  readonly retriable: boolean;

  /** @param error of a grpc-js call; its stack, which shows where the call was made, is kept */
  constructor(error: ServiceError, failure: CallFailure) {
    super(error.message);
    if (error.stack !== undefined) this.stack = error.stack;
    this.code = error.code;
    this.details = error.details;
    this.metadata = error.metadata;
    this.replayed = readReplayed(error.metadata);
    this.expiresAt = readExpiry(error.metadata);
    this.attempts = failure.attempts;
    this.why = failure.why;
    this.outcomeUnknown = failure.outcomeUnknown;
    this.requestId = failure.requestId;
    this.retriable = failure.retriable;
  }
}

/**
 * Reads what the client interceptor knows of a call that failed from the error that a grpc-js callback gets.
 *
 * @returns undefined where another interceptor made the error, or made it anew: then nothing is known
 */
export function readCallFailure(error: ServiceError): CallFailure | undefined {
  const { attempts, why, outcomeUnknown, requestId, retriable } = error as ServiceError & Partial<CallFailure>;
  if (attempts === undefined || why === undefined || outcomeUnknown === undefined || retriable === undefined) {
    return undefined;
  }
  return { attempts, why, outcomeUnknown, requestId, retriable };
}
