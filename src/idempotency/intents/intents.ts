import type { SqlClient } from '../store/database';
import { checkKey, checkSubject } from './check-intent';
import { type IntentOptions, intentSettings } from './intent-options';
import { query } from './intent-query';
import { FINISH_IF_KEY, FORGET_IF_KEY, type IntentRow, PURGE_FINISHED, SELECT_UNRESOLVED } from './intent-sql';
import { makeOrFind } from './make-or-find';

/** An intent and the key it has. */
export interface Intent {
  /** What is to be done, for example `pay`. */
  readonly intent: string;
  /** The id of the business object. */
  readonly draftId: string;
  /** The key, to be sent with every attempt: `payments.createPayment(request, { requestId })`. */
  readonly requestId: string;
  /** Until when the key is handed out. */
  readonly expiresAt: Date;
}

/** What `requestIdFor` finds or makes. */
export type IntentOutcome =
  /** Committed: the key may be sent, for the first time or again. An answer that is recorded already comes back. */
  | (Intent & { readonly kind: 'usable' })
  /**
   * The key was made too long ago to be sent. Whether it was used is to be found out: by `RequestsService.GetRequest`, or
   * by the business object itself. Then `finish` it, or `forget` it where nothing happened and nothing will; the next
   * `requestIdFor` after that makes a new key.
   */
  | (Intent & { readonly kind: 'expired'; readonly finished: boolean });

/** Keys of intents, kept beside the business objects. */
export interface Intents {
  /**
   * The key of an intent: made and committed if there is none, else the one that was made, by whichever process.
   *
   * @param intent what is to be done, for example `pay`: part of what the key is found by
   * @param draftId the id of the business object, taken exactly as it is. Another try on purpose (another card after a
   *   refusal) is another draft
   * @throws TypeError if either can't be one; OpenTransactionError inside a transaction; what the client throws otherwise
   */
  requestIdFor(intent: string, draftId: string): Promise<IntentOutcome>;
  /**
   * Notes that the final answer is known, an error that no retry can change included. The key stays, so that a second
   * delivery of the same job finds it and is told the recorded answer, until `purgeFinished` removes it.
   *
   * @param tx to do so in the transaction that stores the answer
   * @returns false where the intent has this key no longer
   */
  finish(intent: Pick<Intent, 'intent' | 'draftId' | 'requestId'>, tx?: SqlClient): Promise<boolean>;
  /**
   * Removes the key, so that the intent can be made anew. Only for a key that had no effect and never will: while an
   * attempt with it may still be on its way, a second key is a second payment.
   *
   * @param tx to do so in a transaction
   * @returns false where the intent has this key no longer
   */
  forget(intent: Pick<Intent, 'intent' | 'draftId' | 'requestId'>, tx?: SqlClient): Promise<boolean>;
  /**
   * Expired intents of this producer that nobody has finished or forgotten, the oldest first: what somebody has to find
   * out about.
   *
   * @param limit most intents; default 100
   */
  unresolved(limit?: number): Promise<readonly Intent[]>;
  /**
   * Removes what was finished longer ago than `keepFinishedMs`, batch by batch, and says how much that was. Never an
   * unfinished intent. Safe in several processes at once.
   */
  purgeFinished(): Promise<number>;
}

/** More rows than anybody wants at once, and few enough for the `int` of a LIMIT. */
const MOST_ROWS = 100_000;

/**
 * Keeps the keys of intents in the caller's own database, so that a process that is killed after it sent a request finds
 * the key again and is told the recorded answer (design 5). It makes no key in a transaction: one that is rolled back
 * after the request was sent would be made anew.
 *
 * @throws TypeError that names each option at fault
 */
export function createIntents(options: IntentOptions): Intents {
  const settings = intentSettings(options);
  const { client, producer, keepFinishedMs, purgeBatchSize } = settings;

  const changeIfKey = async (statement: string, intent: Parameters<Intents['finish']>[0], tx: SqlClient) => {
    checkSubject(intent.intent, intent.draftId);
    checkKey(intent.requestId);
    const rows = await query<unknown[]>(tx, statement, producer, intent.intent, intent.draftId, intent.requestId);
    return rows.length > 0;
  };

  return {
    requestIdFor: async (intent, draftId) => {
      checkSubject(intent, draftId);
      const row = await makeOrFind(settings, intent, draftId);
      const found = { intent, draftId, requestId: row.requestId, expiresAt: new Date(row.expiresAtMs) };
      return row.expired ? { ...found, kind: 'expired', finished: row.finished } : { ...found, kind: 'usable' };
    },

    finish: (intent, tx = client) => changeIfKey(FINISH_IF_KEY, intent, tx),

    forget: (intent, tx = client) => changeIfKey(FORGET_IF_KEY, intent, tx),

    unresolved: async (limit = 100) => {
      if (!Number.isInteger(limit) || limit < 1 || limit > MOST_ROWS) {
        throw new TypeError(`limit: expected a whole number from 1 to ${MOST_ROWS}`);
      }
      const rows = await query<UnresolvedRow[]>(client, SELECT_UNRESOLVED, producer, limit);
      return rows.map(({ expiresAtMs, ...intent }) => ({ ...intent, expiresAt: new Date(expiresAtMs) }));
    },

    purgeFinished: async () => {
      for (let total = 0; ;) {
        const values = [producer, keepFinishedMs, purgeBatchSize];
        const [row] = await query<{ purged: number }[]>(client, PURGE_FINISHED, ...values);
        const purged = row?.purged ?? 0;
        total += purged;
        if (purged < purgeBatchSize) return total;
      }
    },
  };
}

type UnresolvedRow = Pick<Intent, 'intent' | 'draftId' | 'requestId'> & Pick<IntentRow, 'expiresAtMs'>;
