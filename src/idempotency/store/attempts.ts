/** How often a request is tried once a step of it is recorded (design 3.1). Then it is parked, for a person. */
export const MOST_ATTEMPTS = 10;

const FIRST_PAUSE_MS = 2_000;
const GROWTH = 3;
const LONGEST_PAUSE_MS = 3_600_000;

/**
 * How long a half-finished request is let be after an attempt that an outage ended, milliseconds. Nothing after the first,
 * since an answer that was lost is there for the asking; then longer each time, so that ten attempts outlast an outage of
 * an hour and a half; nothing after the last, whose request waits for a person.
 *
 * @param attempt which one it was, from 1
 */
export function pauseAfterMs(attempt: number): number {
  if (attempt <= 1 || attempt >= MOST_ATTEMPTS) return 0;
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * GROWTH ** (attempt - 2));
}
