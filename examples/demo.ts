/**
 * Shows what a key is worth: pay, retry, reuse, collide, crash. Starts two processes of the service and a database of
 * its own, prints a line per attempt and a count per scene, and ends with exit code 1 if a count is wrong.
 *
 * Run it with `npm run demo`.
 */
import type { Attempt } from './demo-payment';
import { type Scene, SCENES } from './demo-scenes';
import { openShop, type Shop } from './demo-shop';

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

/** Plays a scene and prints its count. Returns whether everything was as it must be. */
async function show(scene: Scene, shop: Shop, interrupted: Promise<never>): Promise<boolean> {
  console.log(`\n${scene.title}`);
  const before = await shop.countPayments();
  const attempts = await Promise.race([scene.play(shop), interrupted]);
  const payments = (await shop.countPayments()) - before;
  const right = payments === scene.payments && summary(attempts).join() === scene.outcomes.join();
  const verdict = right ? 'as it must be' : `WRONG: expected ${scene.payments} and ${scene.outcomes.join(', ')}`;
  console.log(`  = attempts: ${attempts.length}, payments: ${payments}, ${verdict}`);
  return right;
}

/** The outcomes, where attempts that were told one after the other to come again count as one. */
function summary(attempts: readonly Attempt[]): readonly string[] {
  const outcomes = attempts.map(({ outcome }) => outcome);
  return outcomes.filter((outcome, at) => outcome !== 'REQUEST_IN_PROGRESS' || outcome !== outcomes[at - 1]);
}

async function main(): Promise<void> {
  // Who has seen enough (`| head`) only stops reading: the shop has to be closed all the same.
  process.stdout.on('error', () => undefined);
  const interrupted = interruption();
  const shop = await openShop((line) => console.log(line));
  try {
    let allRight = true;
    for (const scene of SCENES) allRight = (await show(scene, shop, interrupted)) && allRight;
    const asked = shop.p1.authorizationsAsked() + shop.p2.authorizationsAsked();
    const why = allRight ? ': once per payment, and once by the process that was killed' : '';
    console.log(`\nThe card network was asked ${asked} times${why}.`);
    console.log(allRight ? 'No intent was paid twice.' : 'A count is wrong.');
    if (!allRight) process.exitCode = 1;
  } finally {
    await shop.close();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Interrupted ? error.message : error);
  process.exit(1);
});
