import type { Database } from '../../src/database/connect';
import type { Prisma } from '../../src/gen/prisma/client';
import type { TransactionClient } from '../../src/idempotency/index';

/** A way to open a transaction on the connections of the handlers. */
export type TransactionWay = (database: Database) => TransactionClient<Prisma.TransactionClient>;

/** All there are, each with what it is called in the name of a test. */
export const TRANSACTION_WAYS: readonly (readonly [string, TransactionWay])[] = [
  ["of Prisma's own", ({ business }) => business],
  ['of a client bound to its connection', ({ transactions }) => transactions],
];
