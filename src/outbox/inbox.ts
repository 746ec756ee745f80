import type { SqlClient } from '../idempotency/index';
import { PURGE_RECEIVED, RECEIVE_ONCE } from './sql';

/** What became of a message. */
export type InboxOutcome<Value> =
  | { readonly kind: 'processed'; readonly value: Value }
  /** It was taken before, by a transaction that committed. Nothing was done now. */
  | { readonly kind: 'duplicate' };

/** What a consumer has taken, for transports that deliver more than once and carry no request key. */
export interface Inbox {
  /**
   * Takes a message once: notes it in the transaction, then runs `work` in the same. Of copies that come at the same time
   * all but one wait for that transaction; if it rolls back, the next one runs. A consumer behind the interceptors of
   * this package needs none of it.
   *
   * @param messageId of the transport, the same on every copy; 1 to 255 characters
   * @throws TypeError for what can't be an id; what `work` throws, and then the transaction must roll back
   */
  once<Tx extends SqlClient, Value>(
    tx: Tx,
    messageId: string,
    work: (tx: Tx) => Promise<Value>,
  ): Promise<InboxOutcome<Value>>;
  /**
   * Forgets what was taken longer ago than `retentionMs`, in batches; how many that was. A copy that comes after that is
   * taken again, so it is longer than the transport may repeat itself.
   */
  purge(client: SqlClient, retentionMs: number): Promise<number>;
}

/** Whose inbox it is. */
export interface InboxOptions {
  /** Name of the consumer, for ever the same: each takes every message once. */
  readonly consumer: string;
  /** Told of every message that had been taken before. Default: nobody. */
  readonly onDuplicate?: () => void;
}

const PURGE_BATCH = 1_000;

/**
 * Makes the inbox of a consumer.
 *
 * @throws TypeError for what can't be a name
 */
export function createInbox({ consumer, onDuplicate }: InboxOptions): Inbox {
  if (!isText(consumer)) throw new TypeError(`consumer: expected ${TEXT_EXPECTED}`);
  return {
    once: async (tx, messageId, work) => {
      if (!isText(messageId)) throw new TypeError(`messageId: expected ${TEXT_EXPECTED}`);
      const received = await tx.$queryRawUnsafe<unknown[]>(RECEIVE_ONCE, consumer, messageId);
      if (received.length > 0) return { kind: 'processed', value: await work(tx) };
      onDuplicate?.();
      return { kind: 'duplicate' };
    },

    purge: async (client, retentionMs) => {
      for (let total = 0; ;) {
        const values = [consumer, retentionMs, PURGE_BATCH];
        const [row] = await client.$queryRawUnsafe<{ count: number }[]>(PURGE_RECEIVED, ...values);
        const count = row?.count ?? 0;
        total += count;
        if (count < PURGE_BATCH) return total;
      }
    },
  };
}

const TEXT_EXPECTED = 'a text of 1 to 255 characters, well-formed and without U+0000';

/** A lone surrogate would be stored as U+FFFD: two messages would be one. Postgres stores no U+0000. */
function isText(value: unknown): boolean {
  if (typeof value !== 'string' || value.length < 1 || value.length > 255) return false;
  return value.isWellFormed() && !value.includes('\u0000');
}
