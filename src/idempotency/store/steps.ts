import type { SqlClient } from './database';
import type { NewClaim } from './insert-claim';
import type { HeldClaim, StoredSteps } from './outcomes';
import { PARK_IF_EXHAUSTED, RECORD_STEP_IF_HELD, RECORD_STEP_IN_TRANSACTION_IF_HELD } from './sql/step';

/** Records steps inside a business transaction, as its fence: it fails, now or at COMMIT, where the claim is not held. */
export async function recordStepInTransaction(
  tx: SqlClient,
  { bucket, id, ownerToken }: HeldClaim,
  { recoveryPoint, results, resource }: StoredSteps,
  idleMs: number,
): Promise<void> {
  const values = [bucket, id, ownerToken, String(idleMs), recoveryPoint, results, resource ?? null];
  await tx.$queryRawUnsafe(RECORD_STEP_IN_TRANSACTION_IF_HELD, ...values);
}

/** Records steps by itself. False when the claim was no longer held. To repeat it changes nothing. */
export async function recordStep(
  records: SqlClient,
  { bucket, id, ownerToken }: HeldClaim,
  { recoveryPoint, results, after }: StoredSteps,
): Promise<boolean> {
  const values = [bucket, id, ownerToken, recoveryPoint, results, after ?? null];
  return (await records.$queryRawUnsafe<unknown[]>(RECORD_STEP_IF_HELD, ...values)).length > 0;
}

/** Parks a half-finished record that was tried too often. False when it has moved. */
export async function parkIfExhausted(
  records: SqlClient,
  { request, id, takeoverToken }: NewClaim,
  tokenSeen: string,
  mostAttempts: number,
): Promise<boolean> {
  const values = [request.key.bucket, id, tokenSeen, takeoverToken, mostAttempts];
  return (await records.$queryRawUnsafe<unknown[]>(PARK_IF_EXHAUSTED, ...values)).length > 0;
}
