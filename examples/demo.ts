/**
 * Shows what a key is worth: pay, retry, reuse, collide. Starts a service and a database of its own, prints a line per
 * attempt and a count per scene, and ends with exit code 1 if a count is wrong.
 *
 * Run it with `npm run demo`.
 */
import { newRequestId } from '../src/idempotency/index';
import { type Attempt, openShop, type Shop } from './demo-shop';

/** What must be true of a scene when it is over. */
interface Expected {
  readonly outcomes: readonly string[];
  readonly payments: number;
}

async function pay(shop: Shop): Promise<readonly Attempt[]> {
  const intent = { requestId: newRequestId(), orderId: 'order-1', amountMinor: 1250n };
  return [await shop.attempt(intent)];
}

async function retry(shop: Shop): Promise<readonly Attempt[]> {
  const intent = { requestId: newRequestId(), orderId: 'order-2', amountMinor: 1250n };
  return [await shop.attempt(intent), await shop.attempt(intent), await shop.attempt(intent)];
}

async function reuse(shop: Shop): Promise<readonly Attempt[]> {
  const intent = { requestId: newRequestId(), orderId: 'order-3', amountMinor: 1250n };
  return [await shop.attempt(intent), await shop.attempt({ ...intent, amountMinor: 9900n })];
}

async function collide(shop: Shop): Promise<readonly Attempt[]> {
  const intent = { requestId: newRequestId(), orderId: 'order-4', amountMinor: 1250n };
  const network = shop.holdAuthorizations();
  const first = shop.attempt(intent);
  await network.asked;
  const second = await shop.attempt(intent);
  network.answer();
  return [second, await first, await shop.attempt(intent)];
}

const SCENES: readonly (readonly [string, (shop: Shop) => Promise<readonly Attempt[]>, Expected])[] = [
  ['pay: one intent, one attempt', pay, { outcomes: ['paid'], payments: 1 }],
  ['retry: the same key three times', retry, { outcomes: ['paid', 'replayed', 'replayed'], payments: 1 }],
  ['reuse: the same key for another amount', reuse, { outcomes: ['paid', 'REQUEST_ID_REUSED'], payments: 1 }],
  [
    'collide: a second attempt while the first still runs',
    collide,
    { outcomes: ['REQUEST_IN_PROGRESS', 'paid', 'replayed'], payments: 1 },
  ],
];

/** Somebody ended the demo before its last scene. */
class Interrupted extends Error {}

/** Rejects at Ctrl-C, so that the scene ends and the shop is closed. */
function interruption(): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => reject(new Interrupted(`ended by ${signal} before the last scene`)));
    }
  });
  // While the shop opens nobody looks at it yet.
  interrupted.catch(() => undefined);
  return interrupted;
}

async function main(): Promise<void> {
  // Who has seen enough (`| head`) only stops reading: the shop has to be closed all the same.
  process.stdout.on('error', () => undefined);
  const interrupted = interruption();
  const shop = await openShop((line) => console.log(line));
  try {
    for (const [title, play, expected] of SCENES) {
      console.log(`\n${title}`);
      const before = await shop.countPayments();
      const outcomes = (await Promise.race([play(shop), interrupted])).map(({ outcome }) => outcome);
      const payments = (await shop.countPayments()) - before;
      const right = payments === expected.payments && outcomes.join() === expected.outcomes.join();
      if (!right) process.exitCode = 1;
      const verdict = right
        ? 'as it must be'
        : `WRONG: expected ${expected.payments} and ${expected.outcomes.join(', ')}`;
      console.log(`  = attempts: ${outcomes.length}, payments: ${payments}, ${verdict}`);
    }
    console.log(process.exitCode === 1 ? '\nA count is wrong.' : '\nNobody was charged twice.');
  } finally {
    await shop.close();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Interrupted ? error.message : error);
  process.exit(1);
});
