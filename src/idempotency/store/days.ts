import type { SqlClient, TransactionClient } from './database';
import { attachDay, CREATE_DAY_LOCK, createDay, SELECT_DAYS_TO_CREATE } from './sql/days';

/** How far ahead days are created. A process that can't create any is safe for that long. */
const DAYS_AHEAD = 7;

/**
 * Creates the partitions of the days that keys may carry: from the oldest date that any method still takes to a week
 * ahead. Returns the days it made. Safe to run in several processes at once, and again at any time.
 *
 * A day is made as a table of its own and then attached: unlike `CREATE TABLE … PARTITION OF`, that never queues the
 * claims behind one open transaction. Each has a transaction of its own, so that no number of days is too many for the
 * time that a transaction has, and those that were made stay when one fails.
 *
 * @throws when a day is missing and the role of `client` may not make tables; `isMissingRight` tells
 */
export async function createDays<Tx extends SqlClient>(client: TransactionClient<Tx>): Promise<readonly string[]> {
  const made: string[] = [];
  for (;;) {
    const day = await client.$transaction(createFirstMissing);
    if (day === undefined) return made;
    made.push(day);
  }
}

/** Another process may make days too, so what is missing is only known under the lock. */
async function createFirstMissing(tx: SqlClient): Promise<string | undefined> {
  await tx.$queryRawUnsafe(CREATE_DAY_LOCK);
  const [missing] = await tx.$queryRawUnsafe<{ day: string }[]>(SELECT_DAYS_TO_CREATE, DAYS_AHEAD);
  if (missing === undefined) return undefined;
  await tx.$queryRawUnsafe(createDay(missing.day));
  await tx.$queryRawUnsafe(attachDay(missing.day));
  return missing.day;
}
