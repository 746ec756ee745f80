import type { Metadata } from '@grpc/grpc-js';
import { readErrorDetails } from '../wire/error-details';
import { RETRY_PUSHBACK } from '../wire/metadata';

/** What the server says about the next attempt: nothing, to wait, or not to come. */
export type RetryAdvice =
  { readonly kind: 'none' } | { readonly kind: 'wait'; readonly delayMs: number } | { readonly kind: 'stop' };

/**
 * Reads `grpc-retry-pushback-ms` (gRFC A6) and RetryInfo of an error; of two waits the longer one counts. A value that
 * can't be read, is negative or came twice is advice to stop: whoever sent it wanted to hold us back.
 */
export function readRetryAdvice(metadata: Metadata): RetryAdvice {
  const waitsMs: number[] = [];
  const pushback = metadata.get(RETRY_PUSHBACK);
  if (pushback.length > 0) {
    const text = pushback.join();
    if (!/^\d+$/.test(text)) return { kind: 'stop' };
    waitsMs.push(Number(text));
  }
  const { retryDelayMs } = readErrorDetails(metadata);
  if (retryDelayMs !== undefined) {
    if (retryDelayMs < 0) return { kind: 'stop' };
    waitsMs.push(retryDelayMs);
  }
  return waitsMs.length === 0 ? { kind: 'none' } : { kind: 'wait', delayMs: Math.max(...waitsMs) };
}
