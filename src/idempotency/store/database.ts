/**
 * The database as the library sees it: the few methods of a Prisma client that it uses, so that any generated
 * `PrismaClient` fits and none is imported.
 */

import type { IsolationLevel } from './outcomes';

/** Runs raw SQL with numbered parameters. */
export interface SqlClient {
  /** The name is Prisma's; every text given to it is a constant of `sql/`. */
  $queryRawUnsafe<Rows = unknown>(query: string, ...values: unknown[]): Promise<Rows>;
}

/** Opens interactive transactions. `Tx` is what a handler writes with: `Prisma.TransactionClient`. */
export interface TransactionClient<Tx extends SqlClient> {
  $transaction<R>(work: (tx: Tx) => Promise<R>, options?: TransactionOptions): Promise<R>;
}

/** As Prisma names them, and one more. */
export interface TransactionOptions {
  /** How long a connection is waited for, milliseconds. */
  readonly maxWait?: number;
  /** How long the transaction may take, milliseconds. */
  readonly timeout?: number;
  readonly isolationLevel?: IsolationLevel;
  /**
   * Asked after the work has ended, whether all statements that it started have ended too. For those who use one client
   * for many transactions; Prisma does not ask.
   */
  readonly isIdle?: () => boolean;
}
