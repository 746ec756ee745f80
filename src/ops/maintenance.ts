import { endsWithin } from '../ends-within';

/** How long a stop waits for the round under way: a database that gives no answer keeps no process. Milliseconds. */
const STOP_WITHIN_MS = 2_000;

/** What a process does for the database from time to time. */
export interface Maintenance {
  /** Ends it; a round under way is told, and waited for, two seconds at most. */
  stop(): Promise<void>;
}

/** What to do, and how often. */
export interface MaintenanceOptions {
  /** One round; safe to run in several processes at once. It ends early once `signal` is aborted. */
  readonly runOnce: (signal: AbortSignal) => Promise<unknown>;
  /** From the end of one round to the next, milliseconds. */
  readonly intervalMs: number;
  /** At least so many times as long as a round took passes before the next: it bounds what rounds cost. Default 0. */
  readonly restFactor?: number;
  /** From the start to the first round, milliseconds. */
  readonly firstAfterMs: number;
  /** Told of a round that failed; the next one comes all the same. */
  readonly onError: (error: unknown) => void;
}

/** Runs a round soon after the start and then at every interval, one at a time. */
export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { runOnce, intervalMs, restFactor = 0, firstAfterMs, onError } = options;
  const stopping = new AbortController();
  let round = Promise.resolve();
  let timer: NodeJS.Timeout;
  const runAfter = (delayMs: number): void => {
    timer = setTimeout(() => {
      const startedAt = performance.now();
      round = runOnce(stopping.signal)
        .then(() => undefined, onError)
        .then(() => {
          if (!stopping.signal.aborted) runAfter(Math.max(intervalMs, restFactor * (performance.now() - startedAt)));
        });
    }, delayMs);
    timer.unref();
  };
  runAfter(firstAfterMs);
  return {
    stop: async () => {
      stopping.abort();
      clearTimeout(timer);
      await endsWithin(STOP_WITHIN_MS, round);
    },
  };
}
