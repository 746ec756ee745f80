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
  $transaction<R>(
    work: (tx: Tx) => Promise<R>,
    options?: { maxWait?: number; timeout?: number; isolationLevel?: IsolationLevel },
  ): Promise<R>;
}
