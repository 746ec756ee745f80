import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { StockAnswer, StockCall, StockClient } from './stock-client';

/** An answer, and what was said before it. */
export interface Answered {
  readonly answer: StockAnswer;
  /** The answers that asked to come again, in their order. */
  readonly refusals: readonly StockAnswer[];
}

/** Codes after which the same key is sent again. */
const COME_AGAIN: readonly number[] = [status.ABORTED, status.UNAVAILABLE];

/** Calls with the same key until the answer is no longer "come again". More eager than the hints of the server ask for. */
export async function callUntilAnswered(
  client: StockClient,
  call: StockCall,
  { everyMs = 50, withinMs = 20_000 }: { readonly everyMs?: number; readonly withinMs?: number } = {},
): Promise<Answered> {
  const giveUpAt = performance.now() + withinMs;
  const refusals: StockAnswer[] = [];
  for (;;) {
    const answer = await client.call(call);
    if (!COME_AGAIN.includes(answer.code) || performance.now() > giveUpAt) return { answer, refusals };
    refusals.push(answer);
    await delay(everyMs);
  }
}
