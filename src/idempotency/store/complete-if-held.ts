import type { SqlClient } from './database';
import type { CompletionTerms, HeldClaim, RecordedAnswer } from './outcomes';
import { columnText } from '../wire/recorded-trailers';
import { COMPLETE_IF_HELD } from './sql/complete';

/** Records the answer inside a business transaction, as its fence: it fails, now or at COMMIT, where the claim is not held. */
export async function completeIfHeld(
  tx: SqlClient,
  { bucket, id, ownerToken }: HeldClaim,
  { code, message, response, trailers, resource }: RecordedAnswer,
  { idleMs, keepAnswer }: CompletionTerms,
): Promise<void> {
  await tx.$queryRawUnsafe(
    COMPLETE_IF_HELD,
    bucket,
    id,
    ownerToken,
    String(idleMs),
    code,
    message === '' || !keepAnswer ? null : columnText(message),
    keepAnswer ? (response ?? null) : null,
    keepAnswer ? (trailers ?? null) : null,
    resource === undefined ? null : columnText(resource),
    keepAnswer,
  );
}
