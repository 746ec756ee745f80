import type { Metadata, StatusObject } from '@grpc/grpc-js';
import { EXPIRES_AT, REPLAYED } from '../wire/metadata';
import type { CallFailure } from './call-failure';

/** What is known when a call has ended, beside its response or its error. */
export interface CallEnd {
  /** Whether the answer was recorded by an earlier attempt, be it a response or a refusal (design 3.3). */
  readonly replayed: boolean;
  /** Until when the answer is kept at least; undefined where none is. */
  readonly expiresAt: Date | undefined;
  /** Attempts that were sent; 0 where the call ended before the first. */
  readonly attempts: number;
  /** The key that the call was sent with; undefined where it had none. */
  readonly requestId: string | undefined;
  /** Everything that came with the status; empty where no server had a word in it. */
  readonly trailers: Metadata;
}

/**
 * The status of a call with all its attempts, as the client interceptor hands it up. grpc-js copies all of it to the
 * error that a callback gets.
 */
export type EndStatus = StatusObject & ({ readonly attempts: number } | CallFailure);

/** Reads the end of a call that was sent with this key. An interceptor that answers by itself leaves the attempts out. */
export function readCallEnd(
  { metadata, attempts = 0 }: StatusObject & { readonly attempts?: number },
  requestId: string | undefined,
): CallEnd {
  return { replayed: readReplayed(metadata), expiresAt: readExpiry(metadata), attempts, requestId, trailers: metadata };
}

/** Whether trailers say that an answer was recorded by an earlier attempt. */
export function readReplayed(trailers: Metadata): boolean {
  return trailers.get(REPLAYED)[0] === 'true';
}

/** Until when an answer is kept; undefined where its trailers don't say, or say no time. */
export function readExpiry(trailers: Metadata): Date | undefined {
  const [text] = trailers.get(EXPIRES_AT);
  if (text === undefined) return undefined;
  const expiresAt = new Date(String(text));
  return Number.isNaN(expiresAt.getTime()) ? undefined : expiresAt;
}
