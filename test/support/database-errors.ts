/** Errors in the shapes that a Prisma client on `pg` throws, as they were measured against a real server. */

/** A failed statement: the SQLSTATE is deep in its meta. */
export function statementError(cause: Readonly<Record<string, unknown>>, code = 'P2010'): Error {
  return Object.assign(new Error('\nInvalid `prisma.$queryRawUnsafe()` invocation:\n\n\n'), {
    name: 'PrismaClientKnownRequestError',
    code,
    clientVersion: '7.10.0',
    meta: { driverAdapterError: { name: 'DriverAdapterError', cause } },
  });
}

/** A failed COMMIT: the adapter's own error, bare. */
export function commitError(cause: Readonly<Record<string, unknown>>): Error {
  return Object.assign(new Error(String(cause['kind'])), { name: 'DriverAdapterError', cause });
}

/** An error of Prisma's own transactions, which no server has seen. */
export function transactionError(code: string, meta: Readonly<Record<string, unknown>>): Error {
  return Object.assign(new Error('Transaction API error'), { name: 'PrismaClientKnownRequestError', code, meta });
}

/** What `pg` throws when a connection ends with a statement, or COMMIT, on it. */
export function connectionTerminated(): Error {
  return new Error('Connection terminated unexpectedly');
}

/** The cause of an error that Postgres gave. */
export function postgresCause(originalCode: string): Readonly<Record<string, unknown>> {
  return { kind: 'postgres', originalCode, originalMessage: 'as the server said it', severity: 'ERROR' };
}
