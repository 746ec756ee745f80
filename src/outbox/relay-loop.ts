import type { RelaySettings } from './relay-options';
import type { Relay } from './relay';
import type { Rounds } from './round';

/** What the loop drives. */
export interface RelayWork {
  readonly rounds: Pick<Rounds, 'run' | 'settled'>;
  readonly upkeep: () => Promise<void>;
  /** Aborted by `stop`. */
  readonly stopping: AbortController;
}

/**
 * Runs round after round. A round that took nothing is followed by a wait that doubles up to `maxIdleMs`; so is one that
 * failed. `wake` ends a wait.
 */
export function createRelayLoop(
  { idleMs, maxIdleMs, upkeepEveryMs, onEvent }: RelaySettings,
  { rounds, upkeep, stopping }: RelayWork,
): Pick<Relay, 'start' | 'stop' | 'wake'> {
  let running: Promise<void> | undefined;
  let waitMs = idleMs;
  let woken = false;
  let endWait = (): void => undefined;

  const wait = async (): Promise<void> => {
    const ms = waitMs;
    waitMs = Math.min(maxIdleMs, waitMs * 2);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      endWait = () => {
        clearTimeout(timer);
        resolve();
      };
      // What came between the round and this wait.
      if (woken || stopping.signal.aborted) endWait();
    });
    woken = false;
  };

  const run = async (): Promise<void> => {
    let upkeepAtMs = performance.now();
    while (!stopping.signal.aborted) {
      if (performance.now() >= upkeepAtMs) {
        await upkeep();
        upkeepAtMs = performance.now() + upkeepEveryMs;
      }
      const hasWorked = await rounds.run().then(
        ({ taken }) => taken > 0,
        (error: unknown) => {
          onEvent({ type: 'fault', step: 'take', error });
          return false;
        },
      );
      if (hasWorked) waitMs = idleMs;
      else await wait();
    }
  };

  return {
    start: () => {
      if (running !== undefined) throw new Error('the relay was started before');
      running = run();
    },
    stop: async () => {
      stopping.abort();
      endWait();
      await running;
      await rounds.settled();
    },
    wake: () => {
      woken = true;
      waitMs = idleMs;
      endWait();
    },
  };
}
