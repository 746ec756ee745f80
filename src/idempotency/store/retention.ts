import { hostname } from 'node:os';
import { checkRetentionOptions } from './check-options';
import type { SqlClient, TransactionClient } from './database';
import { isMissingRight } from './database-error';
import { createDays } from './days';
import { type DayToExport, dropDays } from './retention-drop';
import { standForElection } from './retention-election';
import {
  type RetentionEvent,
  type RetentionEventListener,
  type RetentionReport,
  type RetentionStep,
  summarize,
} from './retention-events';
import { observeRecords } from './retention-observe';
import { purgeUndated } from './retention-purge';

/** What a round of retention runs with. */
export interface RetentionOptions<Tx extends SqlClient> {
  /**
   * A client of its own with at least two connections, so that no claim waits for one, and with a `lock_timeout` in its
   * sessions. Its role needs the right to create and drop the tables of days, or days are left to another process.
   */
  readonly client: SqlClient & TransactionClient<Tx>;
  readonly onEvent?: RetentionEventListener;
  /**
   * Told of each day before it goes, to export it; the day waits for it, and comes again in the next round when it
   * rejects, so a day may be exported more than once.
   */
  readonly exportDay?: (day: DayToExport) => Promise<void>;
  /** Most undated records that one statement deletes. Default 1,000. */
  readonly purgeBatch?: number;
  /** How long a maintainer that died keeps others from it, milliseconds. Default 60,000. */
  readonly leaseMs?: number;
  /** Name of this process, for people only. Default: host name and process id. */
  readonly instance?: string;
  /** Ends the round early, after the statement that runs. */
  readonly signal?: AbortSignal;
}

/**
 * Creates the days ahead, as every round does. A process calls it before it serves: keys of today need their day. That its
 * role may not do it is told and not thrown, since another process may have done it, or will.
 *
 * @throws what else the database says
 */
export async function createDaysIfAllowed<Tx extends SqlClient>(
  client: TransactionClient<Tx>,
  onEvent: RetentionEventListener,
): Promise<void> {
  try {
    for (const day of await createDays(client)) onEvent({ type: 'day_created', day });
  } catch (error) {
    if (!isMissingRight(error)) throw error;
    onEvent({ type: 'fault', step: 'create_days', error, missingRight: true });
  }
}

/**
 * Runs one round of retention (design 4.11): creates the days ahead, drops those that are over, deletes undated records
 * whose retention is over, and looks how the records stand. One process at a time does it; the others only look.
 *
 * What a round goes by is in the database: its clock, the methods that ever took keys, and their longest promises. So a
 * process with a wrong clock or fewer methods does the same as any other.
 *
 * A step that fails is reported, and the next one runs all the same.
 *
 * @throws TypeError that names each option at fault and what was expected
 * @throws when the database can't be reached
 */
export async function runRetention<Tx extends SqlClient>(options: RetentionOptions<Tx>): Promise<RetentionReport> {
  checkRetentionOptions(options);
  const { client, exportDay, purgeBatch = 1_000, leaseMs = 60_000, signal } = options;
  const events: RetentionEvent[] = [];
  const onEvent = (event: RetentionEvent): void => {
    events.push(event);
    options.onEvent?.(event);
  };

  const office = await standForElection(client, options.instance ?? `${hostname()}:${process.pid}`, leaseMs);
  if (office !== undefined) {
    const mayGoOn = (): boolean => office.isHeld() && signal?.aborted !== true;
    const steps: readonly [RetentionStep, () => Promise<void>][] = [
      ['create_days', () => createDaysIfAllowed(client, onEvent)],
      ['drop_days', () => dropDays({ client, onEvent, exportDay, mayGoOn })],
      ['purge_undated_records', () => purgeUndated({ client, onEvent, batchSize: purgeBatch, mayGoOn })],
    ];
    try {
      for (const [step, work] of steps) if (mayGoOn()) await attempt(step, work, onEvent);
    } finally {
      await office.resign();
    }
  }
  if (signal?.aborted !== true) await attempt('observe', () => observeRetention(client, onEvent), onEvent);
  return summarize(office !== undefined, events);
}

/**
 * Looks how the records stand and tells it, as every round does, and nothing else: for who wants to know it more often than
 * rounds are run. Any number of processes may. A look that fails on its own is no fault of retention.
 *
 * @throws what the database says
 */
export async function observeRetention(client: SqlClient, onEvent: RetentionEventListener): Promise<void> {
  onEvent({ type: 'observed', observation: await observeRecords(client) });
}

async function attempt(step: RetentionStep, work: () => Promise<void>, onEvent: RetentionEventListener): Promise<void> {
  try {
    await work();
  } catch (error) {
    onEvent({ type: 'fault', step, error, missingRight: isMissingRight(error) });
  }
}
