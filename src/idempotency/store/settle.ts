import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { SqlClient } from './database';
import { isOutage, isSerializationFailure } from './database-error';
import { judge } from './judge';
import type { ClaimRequest, HeldClaim, Settlement } from './outcomes';
import { readRecord } from './read-record';
import { CONFIRM_COMPLETION, TAKE_TOKEN_AWAY_IF_HELD } from './sql/settle';

/** What to settle. */
export interface SettleContext {
  readonly records: SqlClient;
  readonly request: ClaimRequest;
  readonly methodId: number;
  readonly claim: HeldClaim;
  readonly withinMs: number;
}

/** How long one statement waits for the row, milliseconds: the server may still be at the commit. */
const LOCK_TIMEOUT_MS = 1_000;

/**
 * Finds out what became of a commit whose answer was lost (design 4.8): takes the attempt's own token away, so that a
 * commit that has not begun never can, and reads what there is when nothing was left to take. All tries use one new
 * token, so that a try whose answer was lost as well recognises what it did.
 */
export async function settle(context: SettleContext): Promise<Settlement> {
  const { withinMs } = context;
  const over = new AbortController();
  // A statement may give no answer at all, on a connection that has frozen like the one before it.
  const late = delay(withinMs, undefined, { signal: over.signal }).then((): Settlement => ({
    kind: 'unsettled',
    error: new Error(`not settled within ${withinMs} ms`),
  }));
  late.catch(() => undefined);
  try {
    return await Promise.race([settleInRounds(context), late]);
  } finally {
    over.abort();
  }
}

async function settleInRounds(context: SettleContext): Promise<Settlement> {
  const giveUpAt = performance.now() + context.withinMs;
  const newToken = randomUUID();
  for (let round = 1; ; round += 1) {
    try {
      return await settleOnce(context, newToken);
    } catch (error) {
      const again = isSerializationFailure(error) || isOutage(error);
      const pauseMs = Math.min(20 * 2 ** round, 500) * (0.5 + Math.random());
      if (!again || performance.now() + pauseMs > giveUpAt) return { kind: 'unsettled', error };
      await delay(pauseMs);
    }
  }
}

async function settleOnce({ records, request, methodId, claim }: SettleContext, newToken: string): Promise<Settlement> {
  const { bucket, id, ownerToken } = claim;
  const neverCommitted = (recoveryPoint: string | null): Settlement => {
    return { kind: 'never_committed', claim: { ...claim, ownerToken: newToken }, recoveryPoint };
  };
  const [taken] = await records.$queryRawUnsafe<{ recoveryPoint: string | null }[]>(
    TAKE_TOKEN_AWAY_IF_HELD,
    ...[bucket, id, ownerToken, newToken, String(LOCK_TIMEOUT_MS)],
  );
  if (taken !== undefined) return neverCommitted(taken.recoveryPoint);

  const row = await readRecord(records, request, id);
  const found = judge(row, request, methodId);
  if (found.kind === 'claimed' && row.ownerToken === newToken) return neverCommitted(row.recoveryPoint);
  if (found.kind !== 'completed' && found.kind !== 'not_kept') return { kind: 'lost' };
  const confirmed = await records.$queryRawUnsafe<unknown[]>(CONFIRM_COMPLETION, bucket, id, ownerToken);
  return { kind: confirmed.length > 0 ? 'committed' : 'lost' };
}
