import { setTimeout as delay } from 'node:timers/promises';
import type { CompleterOptions } from './completer-options';
import { completerSettings } from './completer-options';
import { type ResumeContext, type ResumeResult, type Resumption, takeUp } from './completer-resume';

/**
 * Finishes in the background what was left half done (design 4.10), for methods whose policy says `resume`, so that a
 * payment does not wait for a client that never comes back.
 *
 * It takes a request over as its caller's retry would: by the same statement, under the same fence and lease, parked after
 * as many attempts. So it may run in any number of processes. It waits until the lease has been over for a while, since
 * a caller who comes back hears the answer and nobody hears this one; the caller who comes later gets the replay.
 */
export interface Completer {
  /**
   * One look: takes up what is due, and resolves when those attempts have ended, with what became of each. Rejects when the
   * store can't be read.
   */
  runOnce(): Promise<readonly ResumeResult[]>;
  /** Looks again and again, the first time at once. Does not keep the process alive. */
  start(): void;
  /**
   * Takes up nothing any more; resolves when no look is under way. Attempts that still run are awaited by `idle` of the
   * server and given up by `abandon`, as all others are: stop this first.
   */
  stop(): Promise<void>;
}

/** Half-finished requests that nobody has resumed for so long have no handler anywhere, milliseconds. */
const STRANDED_AFTER_MS = 2 * 3_600_000;

/** Makes a completer that looks at nothing yet. */
export function createCompleter<Tx extends object>(
  context: ResumeContext<Tx>,
  options: CompleterOptions = {},
): Completer {
  const settings = completerSettings(options);
  const { store, resumable, onEvent } = context;
  const running = new Set<Promise<ResumeResult>>();
  const told = new Map<string, number>();
  const stopping = new AbortController();
  let looking: Promise<unknown> = Promise.resolve();
  let loop: Promise<void> | undefined;

  /** What no handler of any process resumes: told once, and again when there is more or less of it. */
  const tellStranded = async (): Promise<void> => {
    const stranded = await store.countStranded([...resumable.keys()], STRANDED_AFTER_MS);
    const found = new Map(stranded.map(({ path, records }) => [path, records]));
    for (const path of new Set([...told.keys(), ...found.keys()])) {
      const records = found.get(path) ?? 0;
      if (records !== (told.get(path) ?? 0)) onEvent({ type: 'stranded', path, records });
      told.set(path, records);
    }
  };

  const look = async (): Promise<readonly Resumption[]> => {
    if (stopping.signal.aborted) return [];
    await tellStranded();
    const limit = Math.min(settings.batch, settings.mostAtOnce - running.size);
    const started = await takeUp(context, { limit, graceMs: settings.graceMs, signal: stopping.signal });
    for (const { ended } of started) {
      running.add(ended);
      void ended.then(() => running.delete(ended));
    }
    return started;
  };

  /** One look at a time: two would find the same requests. */
  const lookInTurn = (): Promise<readonly Resumption[]> => {
    const mine = looking.then(look);
    looking = mine.catch(() => undefined);
    return mine;
  };

  const lookForEver = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await lookInTurn().catch((error: unknown) =>
        onEvent({ type: 'fault', path: '', what: 'half-finished requests could not be looked for', error }),
      );
      const pauseMs = settings.everyMs * (1 + Math.random() / 5);
      await delay(pauseMs, undefined, { ref: false, signal: stopping.signal }).catch(() => undefined);
    }
  };

  return {
    runOnce: async () => Promise.all((await lookInTurn()).map(({ ended }) => ended)),
    start: () => {
      loop ??= lookForEver();
    },
    stop: async () => {
      stopping.abort();
      await looking;
      await loop;
    },
  };
}
