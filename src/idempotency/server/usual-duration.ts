/** How long the attempts of each method usually take, learned from those of this process. */
export interface UsualDurations {
  /** An attempt has ended. */
  observe(path: string, durationMs: number): void;
  /** Undefined until one has ended. */
  of(path: string): number | undefined;
}

/** How much one attempt moves what is usual. */
const WEIGHT = 0.1;

/** Starts with nothing known. */
export function createUsualDurations(): UsualDurations {
  const usual = new Map<string, number>();
  return {
    observe: (path, durationMs) => {
      const before = usual.get(path);
      usual.set(path, before === undefined ? durationMs : before + WEIGHT * (durationMs - before));
    },
    of: (path) => usual.get(path),
  };
}

/** Without anything known, a duplicate is asked to come back after this; milliseconds. */
const UNKNOWN_MS = 500;
const SHORTEST_MS = 50;
const LONGEST_MS = 5_000;

/**
 * When a duplicate of a running attempt had best come back, milliseconds: when the attempt has usually ended; past that,
 * after half of its age again, so that long ones are asked about less and less often; never later than the end of the
 * lease, when the key is free for sure.
 *
 * @param ageMs how long the running attempt has run, as far as that is known
 * @param leaseLeftMs 0 when the lease is over or somebody has the row in hand just now
 * @param usualMs how long such attempts take, undefined when not known
 */
export function retryHintMs(ageMs: number, leaseLeftMs: number, usualMs: number | undefined): number {
  const expectedMs = (usualMs ?? UNKNOWN_MS) - ageMs;
  const hintMs = expectedMs > 0 ? expectedMs : ageMs / 2;
  const latestMs = leaseLeftMs > 0 ? Math.min(leaseLeftMs, LONGEST_MS) : UNKNOWN_MS;
  return Math.ceil(Math.max(SHORTEST_MS, Math.min(hintMs, latestMs)));
}
