/** What a process does for the database from time to time. */
export interface Maintenance {
  /** Ends it; a run under way is waited for. */
  stop(): Promise<void>;
}

/** What to do, and how often. */
export interface MaintenanceOptions {
  /** One round; safe to run in several processes at once. */
  readonly runOnce: () => Promise<unknown>;
  readonly intervalMs: number;
  /** Told of a round that failed; the next one comes all the same. */
  readonly onError: (error: unknown) => void;
}

/** Runs a round at every interval, one at a time. The first is due after one interval. */
export function startMaintenance({ runOnce, intervalMs, onError }: MaintenanceOptions): Maintenance {
  let round = Promise.resolve();
  const timer = setInterval(() => {
    round = round.then(runOnce).then(() => undefined, onError);
  }, intervalMs);
  timer.unref();
  return {
    stop: async () => {
      clearInterval(timer);
      await round;
    },
  };
}
