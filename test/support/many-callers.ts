import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/request-id';
import { metadataOf, PATHS, type RawClient } from './scripted-server';

/** One call of one caller, once it has ended. */
export interface EndedCall {
  readonly caller: number;
  /** By `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** Those that were sent. */
  readonly attempts: number;
  readonly isOk: boolean;
}

/** Callers that call as long as nobody stops them. */
export interface ManyCallers {
  /** All that have ended so far, in the order in which they did. */
  readonly calls: readonly EndedCall[];
  /** Resolves when the calls that still run have ended. */
  stop(): Promise<void>;
}

/**
 * Has many callers pay at the same time, each with a new key per call and one call after the other.
 *
 * @param pauseMs between the calls of one caller
 */
export function startCallers(client: RawClient, count: number, pauseMs: number): ManyCallers {
  const calls: EndedCall[] = [];
  let isOver = false;
  const call = async (caller: number): Promise<void> => {
    while (!isOver) {
      const beganAt = performance.now();
      const metadata = metadataOf({ 'request-id': newRequestId() });
      const { status: end } = await client.call(PATHS.unknown, { metadata });
      const { attempts = NaN } = end as { readonly attempts?: number };
      calls.push({ caller, beganAt, endedAt: performance.now(), attempts, isOk: end.code === status.OK });
      await delay(pauseMs);
    }
  };
  const callers = Array.from({ length: count }, (_, caller) => call(caller));
  return {
    calls,
    stop: async () => {
      isOver = true;
      await Promise.all(callers);
    },
  };
}

/** Attempts per call; NaN where there was no call. */
export function meanAttempts(calls: readonly EndedCall[]): number {
  return calls.reduce((sum, { attempts }) => sum + attempts, 0) / calls.length;
}

/** How many of the calls were OK at their first attempt, from 0 to 1. */
export function shareOkAtOnce(calls: readonly EndedCall[]): number {
  return calls.filter(({ isOk, attempts }) => isOk && attempts === 1).length / calls.length;
}

/** Attempts beyond the first of each call: what the retry budget bounds. */
export function countRetries(calls: readonly EndedCall[]): number {
  return calls.reduce((sum, { attempts }) => sum + Math.max(0, attempts - 1), 0);
}
