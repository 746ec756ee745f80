import { setTimeout as delay } from 'node:timers/promises';
import { isSerializationFailure } from './database-error';

const TRIES = 5;

/**
 * Runs a statement that is a transaction by itself, and runs it again where Postgres chose it for that: sessions whose
 * default is REPEATABLE READ or SERIALIZABLE fail where others would have waited and gone on.
 */
export async function again<Result>(statement: () => Promise<Result>): Promise<Result> {
  for (let round = 1; ; round += 1) {
    try {
      return await statement();
    } catch (error) {
      if (round === TRIES || !isSerializationFailure(error)) throw error;
      await delay(Math.random() * 10 * 2 ** round);
    }
  }
}
