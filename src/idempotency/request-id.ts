import { randomBytes } from 'node:crypto';

/** What a UUIDv7 is made of, for tests; the defaults are the wall clock and the system's random source. */
export interface RequestIdSources {
  /** Milliseconds since 1970. */
  readonly nowMs?: () => number;
  readonly random?: (size: number) => Uint8Array;
}

/** The counter fills `rand_a` and starts in its lower half, so that there is room to count (RFC 9562, 6.2, method 1). */
const COUNTER_LIMIT = 0x1000;
const COUNTER_SEED_MASK = 0x7ff;
/** How far the ids may run ahead of a clock that was set back. Beyond it their dates would matter more than their order. */
const MAX_LEAD_MS = 10_000;

/**
 * Makes a source of UUIDv7 keys (RFC 9562, 5.7): each greater than the one before, also within one millisecond and when
 * the clock is set back by less than 10 s; 62 random bits keep those of different processes apart.
 */
export function createRequestIds({ nowMs = Date.now, random = randomBytes }: RequestIdSources = {}): () => string {
  let lastMs = -Infinity;
  let counter = 0;
  return () => {
    const now = nowMs();
    const bytes = Buffer.from(random(10));
    const behind = now <= lastMs && lastMs - now <= MAX_LEAD_MS;
    if (behind && counter + 1 < COUNTER_LIMIT) {
      counter += 1;
    } else {
      lastMs = behind ? lastMs + 1 : now;
      counter = bytes.readUInt16BE(0) & COUNTER_SEED_MASK;
    }
    return format(lastMs, counter, bytes);
  };
}

/**
 * Makes a key: a UUIDv7, in ascending order within this process. Call it where the intent is made, store it with the
 * intent and send it on every attempt; a key made anew per attempt protects nothing.
 */
export const newRequestId: () => string = createRequestIds();

function format(atMs: number, counter: number, random: Buffer): string {
  const time = atMs.toString(16).padStart(12, '0');
  const variant = ((random.readUInt16BE(2) & 0x3fff) | 0x8000).toString(16);
  const version = (0x7000 | counter).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}-${random.toString('hex', 4, 10)}`;
}
