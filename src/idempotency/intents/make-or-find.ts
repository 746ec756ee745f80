import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isLostConnection, isSerializationFailure } from '../store/database-error';
import type { IntentSettings } from './intent-options';
import { query } from './intent-query';
import { FIND_INTENT, INSERT_INTENT_IF_ABSENT, type IntentRow } from './intent-sql';
import { OpenTransactionError } from './open-transaction-error';

/** How often making a key starts over when others move under it, or a statement fails in a way that says "again". */
const ROUNDS = 5;

/**
 * Makes the key of an intent or finds it. It inserts and then reads in a statement of its own, since the row of a faster
 * process may not be in the snapshot of the first. A statement whose answer was lost finds its own row when it is
 * repeated.
 *
 * @throws OpenTransactionError inside a transaction that has written, which making a key is; what the client throws
 */
export async function makeOrFind(settings: IntentSettings, intent: string, draftId: string): Promise<IntentRow> {
  const { client, producer, expiresAfterMs } = settings;
  const subject = [producer, intent, draftId] as const;
  for (let round = 1; ; round += 1) {
    try {
      await query(client, INSERT_INTENT_IF_ABSENT, ...subject, expiresAfterMs, randomUUID());
      const [row] = await query<IntentRow[]>(client, FIND_INTENT, ...subject);
      if (row?.inTransaction === true) throw new OpenTransactionError();
      if (row !== undefined) return row;
      if (round === ROUNDS) throw new Error(`intent ${intent}: its key is removed as fast as it is made`);
    } catch (error) {
      if (round === ROUNDS || !(isSerializationFailure(error) || isLostConnection(error))) throw error;
      await delay(Math.random() * 10 * 2 ** round);
    }
  }
}
