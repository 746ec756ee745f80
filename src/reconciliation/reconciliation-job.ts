import { startMaintenance } from '../ops/maintenance';
import type { ReconciliationListener } from './events';
import { openReconciler, type ReconcilerOptions } from './reconciler';

/** How soon after the start the books are compared first, milliseconds. */
const FIRST_AFTER_MS = 10_000;

/** What is compared, and how often. */
export interface ReconciliationJobOptions extends ReconcilerOptions {
  /** From the end of one comparison to the next, milliseconds. */
  readonly intervalMs: number;
  /** Told what was found, for metrics and logs. */
  readonly onEvent: ReconciliationListener;
  /** Told of a comparison that failed; the next one comes all the same. */
  readonly onError: (error: unknown) => void;
}

/** Comparisons that a service makes by itself. */
export interface ReconciliationJob {
  /** Waits for the one under way. */
  stop(): Promise<void>;
}

/**
 * Compares the books of the last 7 days from time to time, and repairs nothing: money moves when somebody asks for it.
 * Rejects when the database can't be used.
 */
export async function startReconciliationJob(options: ReconciliationJobOptions): Promise<ReconciliationJob> {
  const { intervalMs, onEvent, onError } = options;
  const reconciler = await openReconciler(options);
  const job = startMaintenance({
    ...{ intervalMs, onError, firstAfterMs: Math.min(intervalMs, FIRST_AFTER_MS) },
    runOnce: () => reconciler.run({ repair: false, onEvent }),
  });
  return {
    stop: async () => {
      await job.stop();
      reconciler.close();
    },
  };
}
