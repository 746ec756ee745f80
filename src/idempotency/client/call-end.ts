import type { Metadata, StatusObject } from '@grpc/grpc-js';
import { EXPIRES_AT, REPLAYED } from '../wire/metadata';

/** What is known when a call has ended, beside its response or its error. */
export interface CallEnd {
  /** Whether the answer was recorded by an earlier attempt, be it a response or a refusal (design 3.3). */
  readonly replayed: boolean;
  /** Until when the answer is kept at least; undefined where none is. */
  readonly expiresAt: Date | undefined;
  /** Attempts that were sent; 0 where the call ended before the first. */
  readonly attempts: number;
  /** Everything that came with the status; empty where no server had a word in it. */
  readonly trailers: Metadata;
}

/** The status of a call with all its attempts, as the client interceptor hands it up. */
export interface EndStatus extends StatusObject {
  /** Attempts that were sent. */
  readonly attempts: number;
}

/** Reads the end of a call. An interceptor that answers by itself leaves the attempts out. */
export function readCallEnd({ metadata, attempts = 0 }: StatusObject & Partial<EndStatus>): CallEnd {
  const expiresAt = new Date(String(metadata.get(EXPIRES_AT)[0]));
  return {
    replayed: metadata.get(REPLAYED)[0] === 'true',
    expiresAt: Number.isNaN(expiresAt.getTime()) ? undefined : expiresAt,
    attempts,
    trailers: metadata,
  };
}
