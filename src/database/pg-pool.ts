import { Pool, type PoolClient, type PoolConfig, type QueryArrayConfig, type QueryArrayResult } from 'pg';
import { asLostConnection } from './pg-errors';
import { PgTransaction, type TransactionBounds } from './pg-transaction';

type Connected = (error: Error | undefined, client: PoolClient | undefined, done: (release?: unknown) => void) => void;

/** Told that a connection was waited for, because all were in use: how long, milliseconds, whatever came of it. */
export type OnPoolWait = (waitedMs: number) => void;

/**
 * Opens a pool for the driver adapter of Prisma, which borrows a connection for a transaction and nothing else: each that
 * it borrows is a `PgTransaction`. A statement outside of a transaction that gets no answer within the `query_timeout` of
 * the configuration is an error of a lost connection, and its connection is closed.
 */
export function createTransactionPool(config: PoolConfig, bounds: TransactionBounds, onWait?: OnPoolWait): Pool {
  // Statements are sent as they come, each with a Sync of its own: what ends a transaction need not wait for answers.
  const pool = new Pool({ ...config, pipeline: true });
  const connectUncounted = pool.connect.bind(pool) as (callback: Connected) => void;
  const connect = (callback: Connected): void => {
    if (pool.idleCount > 0 || pool.totalCount < pool.options.max) return connectUncounted(callback);
    const startedAt = performance.now();
    connectUncounted((error, client, done) => {
      onWait?.(performance.now() - startedAt);
      callback(error, client, done);
    });
  };
  const query = pool.query.bind(pool) as (statement: QueryArrayConfig) => Promise<QueryArrayResult>;
  // By callback, so that it has a listener at once: one that ends with the answer that made it would end the process.
  const borrow = (): Promise<PgTransaction> =>
    new Promise((resolve, reject) => {
      connect((error, client) => {
        if (client === undefined) reject(error ?? new Error('the pool gave neither a connection nor an error'));
        else resolve(new PgTransaction(client, bounds));
      });
    });
  const joined = {
    // `pg` itself borrows with a callback, for its own `query`.
    connect: (callback?: Connected) => (callback === undefined ? borrow() : connect(callback)),
    query: (statement: QueryArrayConfig) =>
      query(statement).catch((error: unknown) => {
        throw asLostConnection(error);
      }),
  };
  return Object.assign(pool, joined as Pick<Pool, 'connect' | 'query'>);
}
