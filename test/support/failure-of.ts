import type { IdempotencyError } from '../../src/idempotency/index';

/** The error of a call that has to fail. */
export function failureOf(call: Promise<unknown>): Promise<IdempotencyError> {
  return call.then(
    () => Promise.reject(new Error('expected a failure')),
    (error: IdempotencyError) => error,
  );
}
