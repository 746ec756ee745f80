import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  IsolationLevel as SqlIsolationLevel,
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  Transaction,
} from '@prisma/driver-adapter-utils';
import type { Prisma } from '../gen/prisma/client';
import type { IsolationLevel, TransactionClient } from '../idempotency/index';
import { type BoundClient, createBoundClient } from './bound-client';
import { transactionEnd } from './transaction-end';
import { TransactionNotStartedError } from './transaction-errors';

/** What opens transactions for a store. */
export interface BoundTransactions extends TransactionClient<Prisma.TransactionClient> {
  /** Lets go of what is kept for reuse. The connections are the pool's. */
  close(): Promise<void>;
}

/** Prisma's defaults, milliseconds. */
const MAX_WAIT_MS = 2_000;
const TIMEOUT_MS = 5_000;

/** The longest wait of a Node timer; a longer one fires at once. Milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const LEVELS: Readonly<Record<IsolationLevel, SqlIsolationLevel>> = {
  ReadUncommitted: 'READ UNCOMMITTED',
  ReadCommitted: 'READ COMMITTED',
  RepeatableRead: 'REPEATABLE READ',
  Serializable: 'SERIALIZABLE',
};

/**
 * Opens transactions whose client is a whole Prisma client bound to one connection, instead of Prisma's interactive ones,
 * whose book-keeping costs as much as a statement. What is offered inside, the limits and the errors of statements are the
 * same; a transaction that did not start or whose time is over is a plain error with Prisma's code, P2028.
 *
 * A client is used again for another transaction, so a statement that was started and left behind must never reach that
 * one. Whoever opens a transaction says by `isIdle` whether all that it started has ended. Where it does not say so, the
 * client is given up; making another costs as much as ten transactions.
 */
export function createBoundTransactions(factory: SqlDriverAdapterFactory): BoundTransactions {
  const free: BoundClient[] = [];
  let connected: Promise<SqlDriverAdapter> | undefined;
  const connect = (): Promise<SqlDriverAdapter> => (connected ??= factory.connect());

  const giveBack = async (bound: BoundClient, isIdle: () => boolean): Promise<void> => {
    // What was on its way has its answer by now; who waits for it is told within this turn of the event loop.
    if (!isIdle()) await nextTurn();
    if (isIdle()) free.push(bound);
    else await bound.client.$disconnect();
  };

  return {
    $transaction: async (work, options = {}) => {
      const { maxWait = MAX_WAIT_MS, timeout = TIMEOUT_MS, isolationLevel, isIdle = () => false } = options;
      const adapter = await connect();
      const transaction = await start(adapter, maxWait, isolationLevel);
      // Only now: so there are never more clients than connections.
      const bound = free.pop() ?? createBoundClient(adapter.getConnectionInfo?.() ?? { supportsRelationJoins: false });
      bound.bind(transaction);
      const end = transactionEnd(transaction, bound, timeout);
      const timer = setTimeout(() => void end.expire(), Math.min(timeout, LONGEST_TIMER_MS));
      try {
        const result = await work(bound.client);
        await end.commit();
        return result;
      } catch (error) {
        await end.rollBack();
        throw error;
      } finally {
        clearTimeout(timer);
        await end.release();
        await giveBack(bound, isIdle);
      }
    },
    close: async () => {
      await Promise.all(free.splice(0).map(({ client }) => client.$disconnect()));
    },
  };
}

/** A connection that comes too late is given back. */
async function start(
  adapter: SqlDriverAdapter,
  maxWaitMs: number,
  isolationLevel: IsolationLevel | undefined,
): Promise<Transaction> {
  const starting = adapter.startTransaction(isolationLevel === undefined ? undefined : LEVELS[isolationLevel]);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), Math.min(maxWaitMs, LONGEST_TIMER_MS));
  });
  const started = await Promise.race([starting, late]).finally(() => clearTimeout(timer));
  if (started !== 'late') return started;
  starting.then(
    (transaction) => transaction.rollback(),
    () => undefined,
  );
  throw new TransactionNotStartedError(maxWaitMs);
}
