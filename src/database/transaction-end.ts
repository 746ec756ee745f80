import type { SqlQuery, Transaction } from '@prisma/driver-adapter-utils';
import type { BoundClient } from './bound-client';
import { TransactionExpiredError } from './transaction-errors';

/** Ends one transaction once, whoever asks first. */
export interface TransactionEnd {
  /** Commits. Rejects when it did not, or nobody knows. */
  commit(): Promise<void>;
  /** Rolls back unless it has ended. */
  rollBack(): Promise<void>;
  /** Ends a transaction whose time is over. */
  expire(): Promise<void>;
  /** Gives the connection back; to be called in the end. */
  release(): Promise<void>;
}

const COMMIT: SqlQuery = { sql: 'COMMIT', args: [], argTypes: [] };
const ROLLBACK: SqlQuery = { sql: 'ROLLBACK', args: [], argTypes: [] };

/** @param timeoutMs how long the transaction may take, for what is said when it took longer; milliseconds */
export function transactionEnd(transaction: Transaction, bound: BoundClient, timeoutMs: number): TransactionEnd {
  let state: 'open' | 'expired' | 'ended' = 'open';
  let released: Promise<void> | undefined;

  const leave = (next: 'expired' | 'ended'): void => {
    state = next;
    bound.unbind();
  };
  const release = (): Promise<void> => (released ??= transaction.commit());
  const rollBackAs = async (next: 'expired' | 'ended'): Promise<void> => {
    leave(next);
    // A connection on which even this fails is closed, and the server rolls back by itself.
    await transaction.executeRaw(ROLLBACK).catch(() => undefined);
  };

  return {
    commit: async () => {
      if (state === 'expired') throw new TransactionExpiredError(timeoutMs);
      leave('ended');
      await transaction.executeRaw(COMMIT);
    },
    rollBack: async () => {
      if (state === 'open') await rollBackAs('ended');
    },
    expire: async () => {
      if (state !== 'open') return;
      await rollBackAs('expired');
      // At once: a statement that never ends is only ended with its connection. Whether that worked is told at the end.
      await release().catch(() => undefined);
    },
    release,
  };
}
