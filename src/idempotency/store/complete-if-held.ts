import type { SqlClient } from './database';
import type { CompletionTerms, HeldClaim, RecordedAnswer } from './outcomes';
import { columnText } from '../wire/recorded-trailers';
import { COMPLETE_IF_HELD } from './sql/complete';

/** Records the answer inside a business transaction. False when the claim was no longer held. */
export async function completeIfHeld(
  tx: SqlClient,
  { bucket, id, ownerToken }: HeldClaim,
  { code, message, response, trailers, resource }: RecordedAnswer,
  { idleMs, keepAnswer }: CompletionTerms,
): Promise<boolean> {
  const rows = await tx.$queryRawUnsafe<unknown[]>(
    COMPLETE_IF_HELD,
    bucket,
    id,
    ownerToken,
    code,
    message === '' || !keepAnswer ? null : columnText(message),
    keepAnswer ? (response ?? null) : null,
    keepAnswer ? (trailers ?? null) : null,
    String(idleMs),
    resource === undefined ? null : columnText(resource),
    keepAnswer,
  );
  return rows.length > 0;
}
