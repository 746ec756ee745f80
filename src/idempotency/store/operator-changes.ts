import { randomUUID } from 'node:crypto';
import type { StatusError } from '../errors';
import { statusErrorStatus } from '../wire/error-details';
import { columnText, recordTrailers } from '../wire/recorded-trailers';
import type { SqlClient } from './database';
import { isLockTimeout, isSerializationFailure } from './database-error';
import { hasOutlivedItsRetention, type SeenRecord } from './operator';
import { EXPIRE_IF_COMPLETED, FREE_IF_PARKED, REFUSE_IF_UNFINISHED, TAKE_CLAIM_AWAY } from './sql/operator';

/** Who changes a record, as `ada`; kept with it, for people. */
export interface ByOperator {
  readonly operator: string;
}

/** What became of a change. */
export type OperatorChange =
  | 'done'
  /** The record is not what was seen any more; nothing was changed. */
  | 'moved'
  /** A transaction has it in hand, such as a completion that is about to commit; nothing was changed. */
  | 'in_hand';

/** Why a record is not released. */
export type ReleaseRefusal =
  /** An attempt runs; `endLease` takes it away. */
  | 'running'
  /** It has its answer. */
  | 'completed'
  | 'expired'
  /** Its day was dropped: its key is never run again. */
  | 'kept'
  /** It was half finished for longer than its key is kept, and would be parked again. */
  | 'outlived';

/** Why a record is not made a tombstone. */
export type ExpireRefusal =
  | 'running'
  /** No lease, and no step is recorded: the next attempt starts over. */
  | 'unstarted'
  /** No lease, and somebody may have been charged. */
  | 'half_finished'
  | 'parked'
  | 'expired'
  | 'kept';

/**
 * Why a record can't be released; undefined where it can. Parked ones can, and claimed ones whose lease is over: nobody is
 * told that the record is theirs. What is claimed stays so, whatever its steps: it is taken over, never run anew.
 */
export function releaseRefusal(
  record: SeenRecord,
  { endLease }: { readonly endLease: boolean },
): ReleaseRefusal | undefined {
  if (record.keptAt !== undefined) return 'kept';
  switch (record.state) {
    case 'parked':
    case 'claimed':
      if (record.state === 'claimed' && record.leaseLeftMs > 0 && !endLease) return 'running';
      return hasOutlivedItsRetention(record) ? 'outlived' : undefined;
    case 'completed':
    case 'expired':
      return record.state;
  }
}

/**
 * Frees a request that `releaseRefusal` has nothing against, if it is still the one that was seen: the next attempt takes
 * it over and resumes from its recovery point, and attempts count from one again. Whoever owned it is fenced.
 *
 * @param endLease whether also an attempt that runs loses its claim
 */
export async function releaseSeen(
  records: SqlClient,
  record: SeenRecord,
  { operator, endLease }: ByOperator & { readonly endLease: boolean },
): Promise<OperatorChange> {
  const { bucket, id, ownerToken, state } = record;
  const values = [bucket, id, ownerToken, randomUUID(), instanceOf(operator), record.startedBy];
  return state === 'parked'
    ? change(records, FREE_IF_PARKED, values)
    : change(records, TAKE_CLAIM_AWAY, [...values, endLease]);
}

/** Why a record can't be made a tombstone; undefined where it can: it has its answer. */
export function expireRefusal(record: SeenRecord): ExpireRefusal | undefined {
  if (record.keptAt !== undefined) return 'kept';
  switch (record.state) {
    case 'completed':
      return undefined;
    case 'claimed':
      if (record.leaseLeftMs > 0) return 'running';
      return record.recoveryPoint === undefined ? 'unstarted' : 'half_finished';
    case 'parked':
    case 'expired':
      return record.state;
  }
}

/** Makes a tombstone of a completed record, if it is still the one that was seen. Its answer is gone for ever. */
export async function expireSeen(
  records: SqlClient,
  { bucket, id, ownerToken }: SeenRecord,
  { operator }: ByOperator,
): Promise<OperatorChange> {
  return change(records, EXPIRE_IF_COMPLETED, [bucket, id, ownerToken, instanceOf(operator)]);
}

/**
 * Gives an unfinished request that nobody runs its answer, a refusal as `reject` records one, inside the transaction that undoes what it had begun.
 * False where it is not the one that was seen any more: `tx` must then be rolled back.
 */
export async function refuseSeen(
  tx: SqlClient,
  { bucket, id, ownerToken }: SeenRecord,
  refusal: StatusError,
  { operator }: ByOperator,
): Promise<boolean> {
  const { code, details, metadata } = statusErrorStatus(refusal);
  const answer = [code, columnText(details), recordTrailers(metadata, details) ?? null];
  const values = [bucket, id, ownerToken, randomUUID(), ...answer, instanceOf(operator)];
  return (await tx.$queryRawUnsafe<unknown[]>(REFUSE_IF_UNFINISHED, ...values)).length > 0;
}

async function change(records: SqlClient, statement: string, values: readonly unknown[]): Promise<OperatorChange> {
  try {
    return (await records.$queryRawUnsafe<unknown[]>(statement, ...values)).length > 0 ? 'done' : 'moved';
  } catch (error) {
    if (isLockTimeout(error)) return 'in_hand';
    // Above READ COMMITTED this is how a row says that it has moved.
    if (isSerializationFailure(error)) return 'moved';
    throw error;
  }
}

function instanceOf(operator: string): string {
  return `operator ${operator}`;
}
