import { setTimeout as delay } from 'node:timers/promises';
import { startedBy } from '../stored-steps';
import { MOST_ATTEMPTS } from './attempts';
import type { SqlClient } from './database';
import { isLockTimeout, isLostConnection, isSerializationFailure } from './database-error';
import { doubting, type InsertedClaim, type NewClaim } from './insert-claim';
import { expiry, judge, type RecordRow } from './judge';
import type { NaturalBatch } from './natural-batch';
import type { ClaimOutcome, ClaimRequest, TakeoverOutcome } from './outcomes';
import { readRecord } from './read-record';
import { TAKE_OVER_IF_EXPIRED } from './sql/claim';
import { parkIfExhausted } from './steps';

/** How claims reach the database. */
export interface ClaimContext {
  readonly records: SqlClient;
  readonly inserts: NaturalBatch<NewClaim, InsertedClaim>;
}

/** How often a claim starts over when others move under it, or a statement fails in a way that says "again". */
const ROUNDS = 5;

/** Somebody has the row in hand just now. */
const IN_HAND = { kind: 'in_progress', leaseLeftMs: 0, ageMs: 0, resource: undefined } as const;

/**
 * Claims a key: inserts, and where that gave nothing reads in a new statement, since the winner's row may not be in the
 * snapshot of the first. An expired lease is taken over. A record that a statement made whose answer was lost is
 * recognised by its token.
 */
export function claimKey(context: ClaimContext, claim: NewClaim): Promise<ClaimOutcome> {
  return inRounds(() => claimOnce(context, claim));
}

/**
 * Takes over a half-finished request whose lease is over, by the same rules and statements, and never inserts: a record
 * that is gone was given back or forgotten, and one without a step is its caller's to retry.
 */
export function takeOverHalfFinished(context: ClaimContext, claim: NewClaim): Promise<TakeoverOutcome> {
  return inRounds<TakeoverOutcome>(async () => {
    const row = await readRecord(context.records, claim.request, claim.id);
    if (row.state === null || row.recoveryPoint === null) return { kind: 'absent' };
    return takeOverOrSay(context, claim, row);
  });
}

async function inRounds<Outcome>(once: () => Promise<Outcome | 'moved' | 'missed'>): Promise<Outcome | typeof IN_HAND> {
  let missedTakeovers = 0;
  for (let round = 1; ; round += 1) {
    try {
      const outcome = await once();
      if (outcome !== 'moved' && outcome !== 'missed') return outcome;
      if (outcome === 'missed') missedTakeovers += 1;
      // Missed once, somebody may just have completed it; missed twice, somebody has the row in hand.
      if (round === ROUNDS || missedTakeovers === 2) return IN_HAND;
    } catch (error) {
      if (isLockTimeout(error)) return IN_HAND;
      if (round === ROUNDS || !(isSerializationFailure(error) || isLostConnection(error))) throw error;
      await delay(Math.random() * 10 * 2 ** round);
    }
  }
}

async function claimOnce(context: ClaimContext, claim: NewClaim): Promise<ClaimOutcome | 'moved' | 'missed'> {
  const inserted = await context.inserts.submit(claim);
  if (inserted !== undefined) {
    return granted(claim, { ...inserted, attempt: 1, results: null, resource: null }, false);
  }

  return takeOverOrSay(context, claim, await readRecord(context.records, claim.request, claim.id));
}

/** What a record says of a claim: it is taken over where its lease is over. */
async function takeOverOrSay(
  context: ClaimContext,
  claim: NewClaim,
  row: RecordRow,
): Promise<ClaimOutcome | 'moved' | 'missed'> {
  const { request, methodId } = claim;
  const found = judge(row, request, methodId);
  switch (found.kind) {
    case 'absent':
      if (row.fromFuture) return { kind: 'from_future' };
      return row.tooOld ? { kind: 'expired' } : 'moved';
    case 'claimed': {
      if (claim.doubtful.has(row.ownerToken)) return granted(claim, row, row.attempt > 1);
      if (found.leaseLeftMs > 0) return { ...found, kind: 'in_progress' };
      const last = hasOutlivedRetention(row, request) ? 1 : lastAttempt(row);
      if (row.recoveryPoint !== null && row.attempt >= last) {
        const parked = await parkIfExhausted(context.records, claim, row.ownerToken, last);
        return parked ? { kind: 'parked', resource: found.resource, now: true } : 'missed';
      }
      const taken = await takeOverIfExpired(context.records, claim, row.ownerToken);
      return taken === undefined ? 'missed' : granted(claim, taken, true);
    }
    case 'completed':
    case 'not_kept':
    case 'mismatch':
    case 'expired':
    case 'parked':
      return found;
  }
}

/**
 * Whether an undated record is older than its key is kept: whom it asked outside may have forgotten the keys of its effects
 * by now, and would do them again. Dated ones go with their day.
 */
function hasOutlivedRetention({ ageMs }: RecordRow, { key, policy }: ClaimRequest): boolean {
  return key.dated === undefined && ageMs > policy.retentionMs;
}

/** The attempts that died before the first step was stored are not counted: nobody was charged by them. */
function lastAttempt({ results }: RecordRow): number {
  return MOST_ATTEMPTS + startedBy(results) - 1;
}

/** What a claim tells of the record that it holds. */
type Granted = Pick<RecordRow, 'ownerToken' | 'attempt' | 'createdAtMs' | 'results' | 'resource'>;

async function takeOverIfExpired(records: SqlClient, claim: NewClaim, tokenSeen: string): Promise<Granted | undefined> {
  const { request, id, takeoverToken: ownerToken, instance } = claim;
  const values = [request.key.bucket, id, tokenSeen, ownerToken, request.policy.leaseMs, instance];
  const [taken] = await doubting([{ claim, ownerToken }], () =>
    records.$queryRawUnsafe<Omit<Granted, 'ownerToken'>[]>(TAKE_OVER_IF_EXPIRED, ...values),
  );
  return taken === undefined ? undefined : { ...taken, ownerToken };
}

function granted(
  { request, id }: NewClaim,
  { ownerToken, attempt, createdAtMs, results, resource }: Granted,
  takeover: boolean,
): ClaimOutcome {
  const claim = {
    ...{ bucket: request.key.bucket, id, ownerToken, attempt, expiresAt: expiry(createdAtMs, request) },
    results: results === null ? undefined : Buffer.from(results),
    resource: resource ?? undefined,
  };
  return { kind: 'granted', claim, takeover };
}
