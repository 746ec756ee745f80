import { DatabaseError } from 'pg';

/** What `pg` says when its own timer ends the wait for an answer; the connection is gone with it. */
const NO_ANSWER = 'Query read timeout';

/**
 * The COMMIT of a transaction in which a statement had failed: Postgres rolls back and reports no error. Same SQLSTATE as
 * a statement in such a transaction gets, so that whoever reads errors knows that nothing was kept.
 */
export function transactionWasAborted(): DatabaseError {
  const error = new DatabaseError('current transaction is aborted, so that its COMMIT rolled it back', 0, 'error');
  return Object.assign(error, { code: '25P02', severity: 'ERROR' });
}

/** A statement without an answer may have been carried out, as on a connection that broke: it gets the same error. */
export function asLostConnection(error: unknown): unknown {
  if (!(error instanceof Error) || error.message !== NO_ANSWER) return error;
  return new Error('Connection terminated unexpectedly', { cause: error });
}
