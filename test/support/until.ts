import { setTimeout as delay } from 'node:timers/promises';

/** How long between two looks, milliseconds. */
const LOOK_EVERY_MS = 10;

/**
 * Looks again and again until something holds. For what sends no signal, such as the inside of the database.
 *
 * @param what ends up in the error: `10 payments wait for the lock`
 * @param withinMs gives up after this, milliseconds
 */
export async function until(what: string, holds: () => Promise<boolean>, withinMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`after ${withinMs} ms it still does not hold that ${what}`);
    await delay(LOOK_EVERY_MS);
  }
}
