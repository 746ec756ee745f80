import { setTimeout as delay } from 'node:timers/promises';
import { again } from './again';
import type { SqlClient, TransactionClient } from './database';
import { isLockedOut, isOvertakenByDdl } from './database-error';
import type { RetentionEvent } from './retention-events';
import { attachDay, tableOf } from './sql/days';
import {
  detachDay,
  dropDay,
  finalizeDetach,
  keepUnfinished,
  lockDay,
  MOVE_DROPPED_THROUGH,
  SELECT_DAYS_TO_DROP,
  SELECT_PATIENCE,
  selectIsRunning,
} from './sql/retention';

/** A day on its way out, for whoever wants to keep what it holds. */
export interface DayToExport {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The table to read, as SQL. Nobody writes to it any more. */
  readonly table: string;
}

/** What dropping needs. */
export interface DropOptions<Tx extends SqlClient> {
  /** A client whose sessions have a `lock_timeout`. */
  readonly client: SqlClient & TransactionClient<Tx>;
  readonly onEvent: (event: RetentionEvent) => void;
  /** Told of each day before it goes; the day waits for it, and is tried again in the next round when it rejects. */
  readonly exportDay?: ((day: DayToExport) => Promise<void>) | undefined;
  /** Asked before each day. */
  readonly mayGoOn: () => boolean;
}

type Stage = 'attached' | 'detaching' | 'detached' | 'gone';

/** How often a day is tried in one round that open transactions keep from going. */
const TRIES = 3;

/** Between two tries, milliseconds. */
const PAUSE_MS = 500;

/** How long one day's table may take to be read for what must not go with it, milliseconds. */
const DROP_WITHIN_MS = 600_000;

/**
 * Drops the days that are over (design 4.11). Safe in two processes at once, and after a crash at any point; the order
 * carries it:
 *
 * 1. `dropped_through` moves and commits: every later claim of such a key is refused. A claim that began before may still
 *    insert.
 * 2. DETACH CONCURRENTLY waits for every transaction that may see the day, that claim among them, and lets all others
 *    pass. Afterwards no new statement finds the day.
 * 3. In one transaction: an exclusive lock on the detached table waits for the last who got hold of it by other ways and
 *    keeps out who comes late; then the check, which so sees everything that was ever written; then DROP. An attempt that
 *    runs after all puts the day back, and nothing of it is lost.
 *
 * So no record goes while its attempt runs, and no key is claimed whose record is gone. A completion that meets a day on
 * its way out finds no place for its record, fails like any fenced one, and rolls back.
 *
 * @throws when the sessions have no `lock_timeout`, without which one forgotten transaction would hold up the round
 */
export async function dropDays<Tx extends SqlClient>(options: DropOptions<Tx>): Promise<void> {
  const { client, onEvent, mayGoOn } = options;
  await assertPatienceEnds(client);
  await again(() => client.$queryRawUnsafe(MOVE_DROPPED_THROUGH));
  for (const { day } of await selectDays(client, null)) {
    if (!mayGoOn()) return;
    const event = await tryToDrop(options, day);
    if (event === undefined) continue;
    onEvent(event);
    // Only one day can be on its way out, and what keeps this one waiting would keep the next waiting too.
    if (event.type === 'day_postponed') return;
  }
}

async function tryToDrop<Tx extends SqlClient>(
  options: DropOptions<Tx>,
  day: string,
): Promise<RetentionEvent | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await dropOneDay(options, day);
    } catch (error) {
      // Another process that believes it is elected was faster.
      if (isOvertakenByDdl(error)) return undefined;
      if (!isLockedOut(error)) throw error;
      if (attempt === TRIES || !options.mayGoOn()) return { type: 'day_postponed', day };
      await delay(PAUSE_MS);
    }
  }
}

async function dropOneDay<Tx extends SqlClient>(
  { client, exportDay }: DropOptions<Tx>,
  day: string,
): Promise<RetentionEvent | undefined> {
  const stage = await stageOf(client, day);
  switch (stage) {
    case 'gone':
      return undefined;
    case 'attached':
      if (await isRunning(client, day)) return { type: 'day_held_back', day };
      await client.$queryRawUnsafe(detachDay(day));
      break;
    case 'detaching':
      await client.$queryRawUnsafe(finalizeDetach(day));
      break;
    case 'detached':
      break;
  }
  await exportDay?.({ day, table: tableOf(day) });
  return client.$transaction((tx) => dropUnlessRunning(tx, day), { timeout: DROP_WITHIN_MS });
}

async function dropUnlessRunning(tx: SqlClient, day: string): Promise<RetentionEvent | undefined> {
  await tx.$queryRawUnsafe(lockDay(day));
  // Another process put it back. Dropping it as a part of the records would stop all claims.
  if ((await stageOf(tx, day)) !== 'detached') return undefined;
  if (await isRunning(tx, day)) {
    await tx.$queryRawUnsafe(attachDay(day));
    return { type: 'day_held_back', day };
  }
  const kept = await tx.$queryRawUnsafe<unknown[]>(keepUnfinished(day));
  await tx.$queryRawUnsafe(dropDay(day));
  return { type: 'day_dropped', day, kept: kept.length };
}

async function selectDays(
  client: SqlClient,
  day: string | null,
): Promise<readonly { readonly day: string; readonly stage: Stage }[]> {
  return client.$queryRawUnsafe(SELECT_DAYS_TO_DROP, day);
}

async function stageOf(client: SqlClient, day: string): Promise<Stage> {
  return (await selectDays(client, day))[0]?.stage ?? 'gone';
}

async function isRunning(client: SqlClient, day: string): Promise<boolean> {
  const [row] = await client.$queryRawUnsafe<{ running: boolean }[]>(selectIsRunning(day));
  return row?.running === true;
}

async function assertPatienceEnds(client: SqlClient): Promise<void> {
  const [row] = await client.$queryRawUnsafe<{ patience: string }[]>(SELECT_PATIENCE);
  if (row?.patience !== '0') return;
  throw new Error(
    'days are only dropped by sessions that have a lock_timeout: add options=-c lock_timeout=2s to the connection ' +
      'string of the client that retention gets',
  );
}
