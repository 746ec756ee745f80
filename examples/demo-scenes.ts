import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { newRequestId } from '../src/idempotency/index';
import type { Attempt, Intent } from './demo-payment';
import type { Shop } from './demo-shop';

/** Something that happens in a shop, and what must be true when it is over. */
export interface Scene {
  readonly title: string;
  /** @returns the attempts in the order in which they ended */
  play(shop: Shop): Promise<readonly Attempt[]>;
  /** Attempts that were told one after the other to come again count as one. */
  readonly outcomes: readonly string[];
  readonly payments: number;
}

/** A lease of two seconds is over long before. */
const TAKEOVER_WITHIN_MS = 20_000;

/** A new order each time: an order can be paid once, and the database may have seen this demo before. */
const newIntent = (): Intent => ({ requestId: newRequestId(), orderId: `order-${randomUUID()}`, amountMinor: 1250n });

async function pay({ p1, attempt }: Shop): Promise<readonly Attempt[]> {
  return [await attempt(newIntent(), p1)];
}

async function retry({ p1, p2, attempt }: Shop): Promise<readonly Attempt[]> {
  const intent = newIntent();
  return [await attempt(intent, p1), await attempt(intent, p1), await attempt(intent, p2)];
}

async function reuse({ p1, attempt }: Shop): Promise<readonly Attempt[]> {
  const intent = newIntent();
  return [await attempt(intent, p1), await attempt({ ...intent, amountMinor: 9900n }, p1)];
}

async function collide({ p1, p2, attempt }: Shop): Promise<readonly Attempt[]> {
  const intent = newIntent();
  const { asked } = await p1.holdAuthorizations();
  const first = attempt(intent, p1);
  await asked;
  const second = await attempt(intent, p2);
  p1.answerAuthorizations();
  return [second, await first, await attempt(intent, p2)];
}

async function crash({ p1, p2, attempt }: Shop): Promise<readonly Attempt[]> {
  const intent = newIntent();
  const { asked } = await p1.holdAuthorizations();
  const first = attempt(intent, p1);
  await asked;
  await p1.kill();
  const attempts = [await first];
  const giveUpAt = performance.now() + TAKEOVER_WITHIN_MS;
  for (;;) {
    const next = await attempt(intent, p2);
    attempts.push(next);
    if (next.retryAfterMs === undefined || performance.now() > giveUpAt) break;
    await delay(next.retryAfterMs);
  }
  return [...attempts, await attempt(intent, p2)];
}

/** In this order: the last one leaves only one process. */
export const SCENES: readonly Scene[] = [
  { title: 'pay: one intent, one attempt', play: pay, outcomes: ['paid'], payments: 1 },
  {
    title: 'retry: the same key three times',
    play: retry,
    outcomes: ['paid', 'replayed', 'replayed'],
    payments: 1,
  },
  {
    title: 'reuse: the same key for another amount',
    play: reuse,
    outcomes: ['paid', 'REQUEST_ID_REUSED'],
    payments: 1,
  },
  {
    title: 'collide: a second attempt while the first still runs',
    play: collide,
    outcomes: ['REQUEST_IN_PROGRESS', 'paid', 'replayed'],
    payments: 1,
  },
  {
    title: 'crash: p1 is killed while it pays, p2 takes over when the claim of p1 has run out',
    play: crash,
    outcomes: ['UNAVAILABLE', 'REQUEST_IN_PROGRESS', 'paid', 'replayed'],
    payments: 1,
  },
];
