import type { SqlClient } from '../store/database';
import { sqlState } from '../store/database-error';

/** `undefined_table` */
const NO_SUCH_TABLE = '42P01';

/** Runs a statement on intents. A missing table is said in the words of somebody who can do something about it. */
export async function query<Rows>(client: SqlClient, statement: string, ...values: unknown[]): Promise<Rows> {
  try {
    return await client.$queryRawUnsafe<Rows>(statement, ...values);
  } catch (error) {
    if (sqlState(error) !== NO_SUCH_TABLE) throw error;
    throw new Error('intents: the table idempotency_intent is missing; INTENT_TABLE_SQL makes it', { cause: error });
  }
}
