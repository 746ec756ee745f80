/** Counts what is under way, so that a shutdown can wait for handlers whose callers have long hung up. */
export interface RunningCalls {
  /** Follows one piece of work that never rejects. */
  track(work: Promise<void>): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

/** Starts with nothing under way. */
export function createRunningCalls(): RunningCalls {
  const running = new Set<Promise<void>>();
  return {
    track: (work) => {
      running.add(work);
      const end = (): void => void running.delete(work);
      work.then(end, end);
    },
    idle: async () => {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
