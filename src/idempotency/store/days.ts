import type { SqlClient, TransactionClient } from './database';
import { attachDay, CREATE_DAY_LOCK, createDay, SELECT_DAYS_TO_CREATE } from './sql/days';

/** How far ahead days are created. A process that can't create any is safe for that long. */
const DAYS_AHEAD = 7;

/**
 * Creates the partitions of the days that keys may carry: from the oldest date that any method still takes to a week
 * ahead. Returns the days it made. Safe to run in several processes at once, and again at any time.
 *
 * A day is made as a table of its own and then attached: unlike `CREATE TABLE … PARTITION OF`, that never queues the
 * claims behind one open transaction.
 *
 * @throws when a day is missing and the role of `client` may not make tables; `isMissingRight` tells
 */
export async function createDays<Tx extends SqlClient>(client: TransactionClient<Tx>): Promise<readonly string[]> {
  return client.$transaction(async (tx) => {
    await tx.$queryRawUnsafe(CREATE_DAY_LOCK);
    const days = await tx.$queryRawUnsafe<{ day: string }[]>(SELECT_DAYS_TO_CREATE, DAYS_AHEAD);
    for (const { day } of days) {
      await tx.$queryRawUnsafe(createDay(day));
      await tx.$queryRawUnsafe(attachDay(day));
    }
    return days.map(({ day }) => day);
  });
}
