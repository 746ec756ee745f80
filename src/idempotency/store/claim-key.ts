import { setTimeout as delay } from 'node:timers/promises';
import { expiry, judge, type RecordRow } from './judge';
import type { SqlClient } from './database';
import { readRecord } from './read-record';
import { INSERT_CLAIM, TAKE_OVER_IF_EXPIRED } from './sql';
import { isLockTimeout, isLostConnection, isSerializationFailure } from './database-error';
import type { ClaimOutcome, ClaimRequest } from './store';

/** What a claim needs to know. */
export interface ClaimContext {
  readonly records: SqlClient;
  readonly request: ClaimRequest;
  /** `recordId` of the request. */
  readonly id: string;
  readonly methodId: number;
  readonly instance: string;
}

/** How often a claim starts over when others move under it, or a statement fails in a way that says "again". */
const ROUNDS = 5;

/**
 * Claims a key: inserts, and where that gave nothing reads in a new statement, since the winner's row may not be in the
 * snapshot of the first. An expired lease is taken over. All rounds use one token, so a statement whose answer was lost
 * recognises its own row when it is repeated.
 */
export async function claimKey(context: ClaimContext, ownerToken: string): Promise<ClaimOutcome> {
  let missedTakeovers = 0;
  for (let round = 1; ; round += 1) {
    try {
      const outcome = await claimOnce(context, ownerToken);
      if (outcome !== 'moved' && outcome !== 'missed') return outcome;
      if (outcome === 'missed') missedTakeovers += 1;
      // Missed once, somebody may just have completed it; missed twice, somebody has the row in hand.
      if (round === ROUNDS || missedTakeovers === 2)
        return { kind: 'in_progress', leaseLeftMs: 0, resource: undefined };
    } catch (error) {
      if (isLockTimeout(error)) return { kind: 'in_progress', leaseLeftMs: 0, resource: undefined };
      if (round === ROUNDS || !(isSerializationFailure(error) || isLostConnection(error))) throw error;
      await delay(Math.random() * 10 * 2 ** round);
    }
  }
}

async function claimOnce(context: ClaimContext, ownerToken: string): Promise<ClaimOutcome | 'moved' | 'missed'> {
  const { records, request, id, methodId } = context;
  const createdAtMs = await insertClaim(context, ownerToken);
  if (createdAtMs !== undefined) return granted(context, ownerToken, { attempt: 1, createdAtMs }, false);

  const row = await readRecord(records, request, id);
  const found = judge(row, request, methodId);
  switch (found.kind) {
    case 'absent':
      if (row.fromFuture) return { kind: 'from_future' };
      return row.tooOld ? { kind: 'expired' } : 'moved';
    case 'claimed': {
      if (row.ownerToken === ownerToken) return granted(context, ownerToken, row, row.attempt > 1);
      if (found.leaseLeftMs > 0) return { ...found, kind: 'in_progress' };
      const taken = await takeOverIfExpired(context, row.ownerToken, ownerToken);
      return taken === undefined ? 'missed' : granted(context, ownerToken, taken, true);
    }
    case 'completed':
    case 'mismatch':
    case 'expired':
    case 'parked':
      return found;
  }
}

async function insertClaim({ records, request, id, methodId, instance }: ClaimContext, ownerToken: string) {
  const { policy, key, scope, fingerprint } = request;
  const rows = await records.$queryRawUnsafe<{ createdAtMs: number }[]>(
    INSERT_CLAIM,
    key.bucket,
    id,
    key.dated?.atMs ?? null,
    policy.maxKeyAgeMs,
    policy.leaseMs,
    methodId,
    ownerToken,
    fingerprint,
    scope,
    key.text,
    instance,
  );
  return rows[0]?.createdAtMs;
}

async function takeOverIfExpired(
  { records, request, id, instance }: ClaimContext,
  tokenSeen: string,
  ownerToken: string,
): Promise<Pick<RecordRow, 'attempt' | 'createdAtMs'> | undefined> {
  const rows = await records.$queryRawUnsafe<Pick<RecordRow, 'attempt' | 'createdAtMs'>[]>(
    TAKE_OVER_IF_EXPIRED,
    request.key.bucket,
    id,
    tokenSeen,
    ownerToken,
    request.policy.leaseMs,
    instance,
  );
  return rows[0];
}

function granted(
  { request, id }: ClaimContext,
  ownerToken: string,
  { attempt, createdAtMs }: Pick<RecordRow, 'attempt' | 'createdAtMs'>,
  takeover: boolean,
): ClaimOutcome {
  const claim = { bucket: request.key.bucket, id, ownerToken, attempt, expiresAt: expiry(createdAtMs, request) };
  return { kind: 'granted', claim, takeover };
}
