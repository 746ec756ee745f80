/**
 * A key was to be made inside an open transaction. Until that commits, nobody else finds the key, and if it rolls back the
 * intent gets another one, though a request may have been sent with the first. Make the key before the transaction, or
 * after it.
 */
export class OpenTransactionError extends Error {
  override readonly name = 'OpenTransactionError';

  constructor() {
    super('intents: requestIdFor was called inside an open transaction; call it before the transaction or after it');
  }
}
