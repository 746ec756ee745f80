import { LONGEST_TIMER_MS } from '../longest-timer';
import type { IdempotencyStore, Place } from '../store/store';

/** Why a wait for a running attempt ended. */
export type WaitEnd =
  /** Its attempt has ended, or its lease: the key is worth another claim. */
  | 'moved'
  /** The time was over, the call was cancelled, or too many wait already. */
  | 'given_up';

/** Where calls wait for the attempt of another call, holding no connection (design 4.9). */
export interface WaitingRoom {
  /**
   * Waits for the attempt at a place, `withinMs` at most.
   *
   * @param unseenMs for so long no look at the database ends the wait: for who has just seen what a look would tell, and
   *   that it does not help. Default 0
   */
  wait(place: Place, withinMs: number, cancelled: AbortSignal, unseenMs?: number): Promise<WaitEnd>;
  /** An attempt of this process has ended: those who wait for it need not wait for the next look. */
  ended(place: Place): void;
}

/** What a waiting room works with. */
export interface WaitingRoomOptions<Tx> {
  readonly store: Pick<IdempotencyStore<Tx>, 'stillRunning'>;
  /** Most calls that wait at once; others are refused at once. */
  readonly mostWaiting: number;
  /** Told when the places could not be looked at; the waits go on. */
  readonly onError: (error: unknown) => void;
}

/** How often the places are looked at, all in one query; milliseconds. */
const POLL_EVERY_MS = 50;

/** How soon they are looked at again when they could not be; milliseconds. */
const POLL_AFTER_ERROR_MS = 500;

interface Waiting {
  readonly place: Place;
  /** From when on a look ends the wait, by `performance.now()`. */
  readonly seenFromMs: number;
  readonly end: (end: WaitEnd) => void;
}

/** Nobody waits at first. */
export function createWaitingRoom<Tx>({ store, mostWaiting, onError }: WaitingRoomOptions<Tx>): WaitingRoom {
  const waiting = new Map<string, Set<Waiting>>();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  /** One look at a time, however long it takes. */
  let isLooking = false;

  const moved = (key: string, seenAtMs = Infinity): void => {
    for (const one of [...(waiting.get(key) ?? [])]) if (one.seenFromMs <= seenAtMs) one.end('moved');
  };

  /** Returns how soon to look again. */
  const poll = async (): Promise<number> => {
    const nowMs = performance.now();
    const looked = [...waiting].flatMap(([key, [...others]]) => {
      const first = others.find(({ seenFromMs }) => seenFromMs <= nowMs);
      return first === undefined ? [] : [{ key, place: first.place }];
    });
    if (looked.length === 0) return POLL_EVERY_MS;
    try {
      const running = new Set((await store.stillRunning(looked.map(({ place }) => place))).map(keyOf));
      for (const { key } of looked) if (!running.has(key)) moved(key, nowMs);
      return POLL_EVERY_MS;
    } catch (error) {
      onError(error);
      return POLL_AFTER_ERROR_MS;
    }
  };

  const schedule = (afterMs: number): void => {
    if (count === 0 || isLooking || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      isLooking = true;
      void poll().then((nextAfterMs) => {
        isLooking = false;
        schedule(nextAfterMs);
      });
    }, afterMs).unref();
  };

  const left = (): void => {
    count -= 1;
    if (count > 0) return;
    clearTimeout(timer);
    timer = undefined;
  };

  return {
    wait: (place, withinMs, cancelled, unseenMs = 0) =>
      new Promise((resolve) => {
        if (withinMs <= 0 || cancelled.aborted || count >= mostWaiting) return resolve('given_up');
        const key = keyOf(place);
        const giveUp = (): void => one.end('given_up');
        const timeout = setTimeout(giveUp, Math.min(withinMs, LONGEST_TIMER_MS));
        const one: Waiting = {
          place,
          seenFromMs: performance.now() + unseenMs,
          end: (end) => {
            const others = waiting.get(key);
            if (others?.delete(one) !== true) return;
            if (others.size === 0) waiting.delete(key);
            left();
            clearTimeout(timeout);
            cancelled.removeEventListener('abort', giveUp);
            resolve(end);
          },
        };
        const others = waiting.get(key) ?? new Set();
        waiting.set(key, others.add(one));
        count += 1;
        cancelled.addEventListener('abort', giveUp, { once: true });
        schedule(POLL_EVERY_MS);
      }),

    ended: (place) => moved(keyOf(place)),
  };
}

function keyOf({ bucket, id }: Place): string {
  return `${bucket}/${id}`;
}
