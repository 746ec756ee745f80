/** Prisma's code for a transaction that did not come to its end; `meta.operation` tells what was refused. */
const TRANSACTION_API_ERROR = 'P2028';

/** No connection came in time; nothing was run. */
export class TransactionNotStartedError extends Error {
  override readonly name = 'TransactionNotStartedError';
  readonly code = TRANSACTION_API_ERROR;
  readonly meta = { operation: 'start' };

  /** @param maxWaitMs how long one was waited for, milliseconds */
  constructor(maxWaitMs: number) {
    super(`no connection for a transaction came within ${String(maxWaitMs)} ms`);
  }
}

/** The time of a transaction was over before its COMMIT was sent; it was rolled back. */
export class TransactionExpiredError extends Error {
  override readonly name = 'TransactionExpiredError';
  readonly code = TRANSACTION_API_ERROR;
  readonly meta = { operation: 'commit' };

  /** @param timeoutMs how long it might take, milliseconds */
  constructor(timeoutMs: number) {
    super(`the transaction took longer than its ${String(timeoutMs)} ms and was rolled back`);
  }
}

/** The transaction had ended, or its time was over; the statement was not run. */
export class TransactionClosedError extends Error {
  override readonly name = 'TransactionClosedError';
  readonly code = TRANSACTION_API_ERROR;
  readonly meta = { operation: 'query' };

  constructor() {
    super('the transaction has ended; the statement was not run');
  }
}
