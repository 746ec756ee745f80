import { parseKey, type RequestKey } from '../key';
import { recordId } from '../record-id';
import { startedBy } from '../stored-steps';
import type { SqlClient } from './database';
import { type RecordedStep, recordedSteps } from './operator-steps';
import type { Place, RecordState } from './outcomes';
import { MOST_ATTEMPTS } from './attempts';
import { PAUSED_MARK } from './sql/fragments';
import { FIND_BY_KEY, JUDGE_DATE, SELECT_PARKED } from './sql/operator';

/** A record as somebody is shown it who looks after the service: where it stands, never what was asked or answered. */
export interface SeenRecord extends Place {
  /** Proves to a change that the record is still the one that was seen. Not for printing. */
  readonly ownerToken: string;
  readonly state: RecordState;
  /** As on the wire; undefined where the database does not know the method any more. */
  readonly path: string | undefined;
  readonly scope: string;
  readonly requestId: string;
  /** Whether the key carries a date, and so is never run again. */
  readonly isDated: boolean;
  /** When its day was dropped, which it outlived because it is unfinished; no call finds it any more. Undefined for most. */
  readonly keptAt: Date | undefined;
  /** When it was claimed first. */
  readonly since: Date;
  /** Since then, by the database clock. */
  readonly ageMs: number;
  /** Negative where the lease is over. It means nothing but in `claimed`. */
  readonly leaseLeftMs: number;
  /** Until when nobody takes it up after an outage; undefined where it does not wait so. */
  readonly pausedUntil: Date | undefined;
  readonly attempt: number;
  /** Which attempt stored the first step; only those from there on count towards parking. */
  readonly startedBy: number;
  /** The process that claimed last, or the operator who changed it since. */
  readonly instance: string;
  readonly resource: string | undefined;
  readonly recoveryPoint: string | undefined;
  /** Undefined where they can't be read by this version. */
  readonly steps: readonly RecordedStep[] | undefined;
  /** Whether the request is kept, so that a completer can resume it. */
  readonly isRequestKept: boolean;
  /** gRPC code of the answer; undefined without one. */
  readonly code: number | undefined;
  readonly isAnswerKept: boolean;
  readonly completedAt: Date | undefined;
  /** Until when it is kept at least; undefined where nobody knows its method any more. */
  readonly expiresAt: Date | undefined;
}

/** What a key without a record is. */
export type AbsentKey =
  /** It may be used. */
  | 'unused'
  /** Too old to be used first. */
  | 'too_old'
  /** Its day is over, and whatever was recorded under it is forgotten. */
  | 'forgotten';

/** What is known of a key. */
export type FoundRecords =
  /** `description` says what was expected. */
  | { readonly kind: 'malformed'; readonly description: string }
  | { readonly kind: 'none'; readonly absent: AbsentKey }
  /** One for each scope and method that it was used with, the oldest first. */
  | { readonly kind: 'found'; readonly records: readonly SeenRecord[] };

/** A record as `FIND_BY_KEY` reads it. */
interface SeenRow extends Place, Pick<SeenRecord, 'ownerToken' | 'state' | 'scope' | 'requestId' | 'ageMs'> {
  readonly leaseLeftMs: number;
  readonly attempt: number;
  readonly instance: string;
  readonly path: string | null;
  readonly resource: string | null;
  readonly recoveryPoint: string | null;
  readonly results: Uint8Array | null;
  readonly statusCode: number | null;
  readonly answerKept: boolean;
  readonly requestKept: boolean;
  readonly createdAtMs: number;
  readonly completedAtMs: number | null;
  readonly keptAtMs: number | null;
  readonly retentionMs: number | null;
}

/**
 * Finds what is recorded under a key, also by those who know neither its scope nor its method, and also where its day was
 * dropped and it was kept. Rejects when the database can't be read.
 *
 * @param records of a migrated database; the store pool of `connect`
 */
export async function findRecords(records: SqlClient, requestId: string): Promise<FoundRecords> {
  const reading = parseKey([requestId], 'OPAQUE');
  if (reading.kind === 'missing')
    return { kind: 'malformed', description: 'expected the key that the request carried' };
  if (reading.kind === 'malformed') return reading;
  const { key } = reading;
  const rows = await records.$queryRawUnsafe<SeenRow[]>(FIND_BY_KEY, key.bucket, ...idRange(key), key.text);
  if (rows.length > 0) return { kind: 'found', records: rows.map((row) => seen(row, key)) };
  const dated = key.dated?.atMs ?? null;
  const [date] = await records.$queryRawUnsafe<{ dropped: boolean; tooOld: boolean }[]>(JUDGE_DATE, key.bucket, dated);
  if (date === undefined) throw new Error('a judgement of a date gave no row');
  return { kind: 'none', absent: date.dropped ? 'forgotten' : date.tooOld ? 'too_old' : 'unused' };
}

/** Which parked requests are looked for. */
export interface ParkedTerms {
  /** How the path of the method ends; undefined for all. */
  readonly pathEnd: string | undefined;
  /** Most of them. */
  readonly limit: number;
}

/**
 * Finds what is parked now, also where its day was dropped and it was kept; the oldest first. It reads all records.
 *
 * @param records of a migrated database; a pool that may wait for long
 */
export async function findParked(records: SqlClient, { pathEnd, limit }: ParkedTerms): Promise<readonly SeenRecord[]> {
  const rows = await records.$queryRawUnsafe<SeenRow[]>(SELECT_PARKED, pathEnd ?? null, limit);
  return rows.map((row) => seen(row, recordedKey(row)));
}

/**
 * Whether the next call parks a request instead of running it: some step of it is stored, and it was tried ten times since
 * then. Only where its lease is over.
 */
export function hasUsedUpItsAttempts({ state, recoveryPoint, attempt, startedBy }: SeenRecord): boolean {
  return state === 'claimed' && recoveryPoint !== undefined && attempt - startedBy + 1 >= MOST_ATTEMPTS;
}

/**
 * Whether an undated record is half finished for longer than its key is kept: it is parked, not resumed, since whom it asked
 * outside may have forgotten the keys of its effects.
 */
export function hasOutlivedItsRetention({ isDated, recoveryPoint, since, ageMs, expiresAt }: SeenRecord): boolean {
  if (isDated || recoveryPoint === undefined || expiresAt === undefined) return false;
  return since.getTime() + ageMs > expiresAt.getTime();
}

/** The key under which a record was claimed. */
function recordedKey({ requestId }: SeenRow): RequestKey {
  const reading = parseKey([requestId], 'OPAQUE');
  if (reading.kind !== 'key') throw new Error('a record of a key that no claim would take');
  return reading.key;
}

/** Between which ids the records of a key are: the 48 bits that come from the key alone end behind the second group. */
function idRange(key: RequestKey): readonly [string, string] {
  const ofKey = recordId({ scope: '', path: '', key }).slice(0, 13);
  return [`${ofKey}-0000-0000-000000000000`, `${ofKey}-ffff-ffff-ffffffffffff`];
}

function seen(row: SeenRow, key: RequestKey): SeenRecord {
  const { bucket, id, ownerToken, state, scope, requestId, ageMs, leaseLeftMs, attempt } = row;
  const isPaused = state === 'claimed' && row.instance.endsWith(PAUSED_MARK) && leaseLeftMs > 0;
  const path = row.path ?? undefined;
  return {
    ...{ bucket, id, ownerToken, state, scope, requestId, ageMs, leaseLeftMs, attempt, path },
    instance: row.instance.endsWith(PAUSED_MARK) ? row.instance.slice(0, -PAUSED_MARK.length) : row.instance,
    pausedUntil: isPaused ? new Date(row.createdAtMs + ageMs + leaseLeftMs) : undefined,
    isDated: key.dated !== undefined,
    startedBy: startedBy(row.results),
    keptAt: dateOf(row.keptAtMs),
    since: new Date(row.createdAtMs),
    resource: row.resource ?? undefined,
    recoveryPoint: row.recoveryPoint ?? undefined,
    steps: recordedSteps(row.results, path === undefined ? undefined : { scope, path, key }),
    isRequestKept: row.requestKept,
    code: row.statusCode ?? undefined,
    isAnswerKept: row.answerKept,
    completedAt: dateOf(row.completedAtMs),
    expiresAt: dateOf(row.retentionMs === null ? null : row.createdAtMs + row.retentionMs),
  };
}

function dateOf(epochMs: number | null): Date | undefined {
  return epochMs === null ? undefined : new Date(epochMs);
}
