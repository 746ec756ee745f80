import { setTimeout as delay } from 'node:timers/promises';
import type { SqlClient } from './database';
import { isLockTimeout, isOutage, isPoolEnded } from './database-error';
import { type OwnedPlace, releaseIfHeld } from './leases';

/** Gives claims back in the background: such as nobody uses, or may never have been made. */
export type GiveBack = (place: OwnedPlace) => void;

/** How often a claim is looked for and how long after the look before, milliseconds: its statement may be on its way. */
const AFTER_MS = [250, 1_000, 4_000, 16_000];
/** How long all wait for a database that is away, milliseconds. */
const ASK_AGAIN_MS = 1_000;
const LOOK_EVERY_MS = 250;
/** Most claims that wait; of those beyond, the oldest are left to the end of their leases. */
const MOST_WAITING = 1_000;

interface Waiting {
  readonly place: OwnedPlace;
  looks: number;
  dueAt: number;
}

/**
 * Makes what gives claims back later. A claim that is not there is looked for again, for half a minute after the database
 * last came back; while it is away one statement a second asks for all. What is given up ends with its lease.
 */
export function createGiveBack(records: SqlClient): GiveBack {
  const waiting = new Set<Waiting>();
  let isAtWork = false;

  /** False while the database is away. */
  const look = async (one: Waiting): Promise<boolean> => {
    let isGivenBack = false;
    try {
      isGivenBack = await releaseIfHeld(records, one.place);
    } catch (error) {
      if (isPoolEnded(error)) waiting.clear();
      if (isOutage(error) && !isLockTimeout(error)) return false;
    }
    one.looks += 1;
    const afterMs = AFTER_MS[one.looks];
    if (isGivenBack || afterMs === undefined) waiting.delete(one);
    else one.dueAt = performance.now() + afterMs;
    return true;
  };

  const work = async (): Promise<void> => {
    isAtWork = true;
    while (waiting.size > 0) {
      let isThere = true;
      for (const one of [...waiting].filter(({ dueAt }) => dueAt <= performance.now())) {
        isThere &&= await look(one);
      }
      // To give back is no reason for a process to stay.
      await delay(isThere ? LOOK_EVERY_MS : ASK_AGAIN_MS, undefined, { ref: false });
    }
    isAtWork = false;
  };

  return (place) => {
    waiting.add({ place, looks: 0, dueAt: performance.now() + (AFTER_MS[0] ?? 0) });
    const [oldest] = waiting;
    if (waiting.size > MOST_WAITING && oldest !== undefined) waiting.delete(oldest);
    if (!isAtWork) void work();
  };
}
