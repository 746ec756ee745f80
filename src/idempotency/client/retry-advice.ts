import type { Metadata } from '@grpc/grpc-js';
import { readErrorDetails } from '../wire/error-details';
import { RETRY_PUSHBACK } from '../wire/metadata';

/** What the server says about the next attempt: nothing, to wait, or not to come. */
export type RetryAdvice =
  | { readonly kind: 'none' }
  | { readonly kind: 'wait'; readonly delayMs: number }
  | { readonly kind: 'stop'; readonly why: 'pushback' | 'unreadable' };

/**
 * Reads `grpc-retry-pushback-ms` (gRFC A6) and RetryInfo of an error; of two waits the longer one counts. A value that
 * can't be read, is negative or came twice is advice to stop: whoever sent it wanted to hold us back. So are details that
 * can't be read: what holds us back may be in them.
 */
export function readRetryAdvice(metadata: Metadata): RetryAdvice {
  const waitsMs: number[] = [];
  const pushback = metadata.get(RETRY_PUSHBACK);
  if (pushback.length > 0) {
    const text = pushback.join();
    if (!/^\d+$/.test(text)) return { kind: 'stop', why: 'pushback' };
    waitsMs.push(Number(text));
  }
  const { retryDelayMs, unreadable } = readErrorDetails(metadata);
  if (unreadable) return { kind: 'stop', why: 'unreadable' };
  if (retryDelayMs !== undefined) {
    if (retryDelayMs < 0) return { kind: 'stop', why: 'pushback' };
    waitsMs.push(retryDelayMs);
  }
  return waitsMs.length === 0 ? { kind: 'none' } : { kind: 'wait', delayMs: Math.max(...waitsMs) };
}
