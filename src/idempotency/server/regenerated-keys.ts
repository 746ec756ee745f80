import type { ClaimRequest } from '../store/store';

/**
 * Looks for clients that make a new key for every attempt, which protects nothing: many keys for one content, within
 * seconds. It is a suspicion and no more, since a customer may well want the same thing three times.
 */
export interface RegeneratedKeys {
  /** A key was claimed for the first time. True where it is the one that makes its content suspect, once per window. */
  claimed(request: ClaimRequest): boolean;
}

/** So many keys are many. */
const MANY = 3;
/** Counted from the first key of a content, milliseconds. */
const WITHIN_MS = 30_000;
/** Contents that are remembered at most, about 1 MB; the oldest go first. */
const MOST_CONTENTS = 4_096;
/** Where the hash of the canonical form is in a fingerprint: it holds whatever may change between two attempts. */
const CANONICAL_HASH = { start: 33, end: 65 };

interface Seen {
  readonly sinceMs: number;
  keys: number;
}

/** Remembers nothing at first; of this process alone. */
export function createRegeneratedKeys(): RegeneratedKeys {
  const seen = new Map<string, Seen>();
  return {
    claimed: ({ policy, scope, fingerprint }) => {
      const hash = fingerprint.toString('latin1', CANONICAL_HASH.start, CANONICAL_HASH.end);
      const content = `${policy.path} ${scope} ${hash}`;
      const nowMs = performance.now();
      const before = seen.get(content);
      if (before !== undefined && nowMs - before.sinceMs < WITHIN_MS) {
        before.keys += 1;
        return before.keys === MANY;
      }
      seen.delete(content);
      seen.set(content, { sinceMs: nowMs, keys: 1 });
      const [oldest] = seen.size > MOST_CONTENTS ? seen.keys() : [];
      if (oldest !== undefined) seen.delete(oldest);
      return false;
    },
  };
}
