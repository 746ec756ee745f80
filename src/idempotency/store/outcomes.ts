import type { RequestKey } from '../key';
import type { MethodPolicy } from '../policy';

/** The states of a record (design 4.5). */
export type RecordState = 'claimed' | 'completed' | 'parked' | 'expired';

/** What is claimed, and by which rules. */
export interface ClaimRequest {
  readonly policy: MethodPolicy;
  /** The account of the caller. */
  readonly scope: string;
  readonly key: RequestKey;
  /** As made by `fingerprint`. */
  readonly fingerprint: Buffer;
  /** The request as received, to be kept until it is answered; only where the policy says `resume`. */
  readonly message?: Buffer | undefined;
}

/** Whose request is asked about. */
export type StatusSubject = Pick<ClaimRequest, 'policy' | 'scope' | 'key'>;

/**
 * Where a request stands. It never holds the recorded message or its trailers: those are handed out for the same request
 * only (promise 5).
 */
export type RequestStatus =
  /** There is no record, and the key may still be used. */
  | { readonly kind: 'unknown' }
  /** Claimed at `since`, by an attempt that runs or by one whose process died. */
  | { readonly kind: 'in_progress'; readonly since: Date; readonly resource: string | undefined }
  | {
      readonly kind: 'completed';
      readonly since: Date;
      readonly resource: string | undefined;
      /** gRPC code of the answer, 0 for OK. */
      readonly code: number;
      /** Text of an error, empty for OK. */
      readonly message: string;
      readonly completedAt: Date;
      /** Until when the answer is kept at least. */
      readonly expiresAt: Date;
    }
  /** Never run again. `since` where there is still a record. */
  | { readonly kind: 'expired'; readonly since: Date | undefined; readonly resource: string | undefined }
  | { readonly kind: 'parked'; readonly since: Date; readonly resource: string | undefined };

/** A claim in the hands of one attempt. */
export interface HeldClaim extends Place {
  readonly ownerToken: string;
  /** Which claim of this key it is, from 1. */
  readonly attempt: number;
  /** Serialized steps of earlier attempts, which this one resumes; undefined for none. */
  readonly results?: Buffer | undefined;
  /** What an earlier attempt has published. */
  readonly resource?: string | undefined;
  /** Until when the record is kept at least. */
  readonly expiresAt: Date;
}

/** The answer that every attempt is told. */
export interface RecordedAnswer {
  /** gRPC code, 0 for OK. */
  readonly code: number;
  /** Text of an error, empty for OK. */
  readonly message: string;
  /** Serialized response message, undefined for an error. An empty message is zero bytes, not undefined. */
  readonly response: Buffer | undefined;
  /** Serialized trailers that belong to it, undefined where there are none. */
  readonly trailers: Buffer | undefined;
  /** What the request is about, such as `payments/<id>`: told to those who ask for its status, not to its caller. */
  readonly resource?: string | undefined;
}

/** Bounds of one business transaction. */
export interface TransactionLimits {
  /** How long the transaction may wait for a connection, milliseconds. */
  readonly maxWaitMs: number;
  /** How long it may be open, milliseconds. */
  readonly timeoutMs: number;
  /** Default: what the database gives, READ COMMITTED unless it was told otherwise. */
  readonly isolationLevel?: IsolationLevel | undefined;
}

/** How much a transaction sees of others, as Prisma names it. */
export type IsolationLevel = 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable';

/** How an answer is recorded. */
export interface CompletionTerms {
  /** How long the transaction may idle after the fence before the server ends it, milliseconds. */
  readonly idleMs: number;
  /** False to record only the resource: the answer is too large, or is rebuilt for every replay. */
  readonly keepAnswer: boolean;
}

/** The primary key of a record. */
export interface Place {
  /** `YYYY-MM-DD` */
  readonly bucket: string;
  readonly id: string;
}

/** The steps of a half-finished request, as they are stored. */
export interface StoredSteps {
  /** Different for every step and its begin: by it a commit whose answer was lost is recognised. */
  readonly recoveryPoint: string;
  /** The recovery point that it follows; undefined for none. What comes late must not take back what was stored since. */
  readonly after?: string | undefined;
  /** Serialized steps with their results. */
  readonly results: Buffer;
  /** What the request is about, stored with a phase that has said so; undefined leaves it as it is. */
  readonly resource?: string | undefined;
}

/** A lease to prolong: from now on by `leaseMs`. */
export interface Renewal {
  readonly claim: HeldClaim;
  readonly leaseMs: number;
}

/**
 * What became of a renewal. `busy`: still held, but somebody has the row in hand, so that it was not prolonged.
 */
export type RenewalResult = 'renewed' | 'lost' | 'busy';

/** What became of a commit whose answer was lost. */
export type Settlement =
  /** It happened, and has reached the disk. */
  | { readonly kind: 'committed' }
  /**
   * No completion happened and none will. `claim` holds the key under a new token. `recoveryPoint` tells whether it was a
   * step that happened; null where none is recorded.
   */
  | { readonly kind: 'never_committed'; readonly claim: HeldClaim; readonly recoveryPoint: string | null }
  /** The claim had gone to another attempt, or is gone. */
  | { readonly kind: 'lost' }
  /** The store could not be asked in time. */
  | { readonly kind: 'unsettled'; readonly error: unknown };

/** What an error says. All false for one that did not come from the database. */
export interface DatabaseFault {
  /** The fence refused, since the claim was no longer held: nothing of the transaction was kept. */
  readonly fenced: boolean;
  /** The transaction was chosen to be run again: a serialization failure or a deadlock. */
  readonly runAgain: boolean;
  /** The transaction did not commit, for sure. False where the answer to a COMMIT was lost. */
  readonly rolledBack: boolean;
  /** The database could not be reached, or went away: neither the caller's fault nor the handler's. */
  readonly outage: boolean;
}

/** An answer that was given and can be had again. */
export interface CompletedOutcome {
  readonly kind: 'completed';
  readonly answer: RecordedAnswer;
  readonly expiresAt: Date;
}

/** An answer that was given once; what is recorded is that, and what it was about. */
export interface NotKeptOutcome {
  readonly kind: 'not_kept';
  /** gRPC code of the answer that was given. */
  readonly code: number;
  readonly resource: string | undefined;
  readonly expiresAt: Date;
}

/** An attempt runs, or its process died. */
export interface RunningClaim {
  /** 0 when the lease is over, or somebody has the row in hand just now. */
  readonly leaseLeftMs: number;
  /** How long the running attempt has run, at least; milliseconds. */
  readonly ageMs: number;
  readonly resource: string | undefined;
}

/** What is left of a record whose answer an operator removed. */
export interface Tombstone {
  readonly resource: string | undefined;
}

/** What a look-up finds of a record, after the request was found to be the same. */
export type LookUpOutcome =
  | CompletedOutcome
  | NotKeptOutcome
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'expired'; readonly tombstone: Tombstone }
  | { readonly kind: 'parked'; readonly resource: string | undefined }
  | ({ readonly kind: 'claimed' } & RunningClaim)
  | { readonly kind: 'absent' };

/** Which half-finished requests are looked for. */
export interface HalfFinishedTerms {
  /** Of which methods. */
  readonly paths: readonly string[];
  /** How long the lease must be over after the first attempt; twice as long after each further one. Milliseconds. */
  readonly shortestWaitMs: number;
  /** How long at most, milliseconds. */
  readonly longestWaitMs: number;
  /** How many at most. */
  readonly limit: number;
}

/** A half-finished request whose lease is over, and what it takes to run it again. */
export interface HalfFinishedRequest {
  readonly path: string;
  readonly scope: string;
  readonly requestId: string;
  readonly fingerprint: Buffer;
  /** The request as it was received. */
  readonly message: Buffer;
}

/** Half-finished requests of a method that nobody resumes. */
export interface StrandedRequests {
  readonly path: string;
  readonly records: number;
}

/** What became of taking over a half-finished request. `absent`: there is none any more, and none was made. */
export type TakeoverOutcome = ClaimOutcome | { readonly kind: 'absent' };

/** What became of a claim. */
export type ClaimOutcome =
  | { readonly kind: 'granted'; readonly claim: HeldClaim; readonly takeover: boolean }
  | CompletedOutcome
  | NotKeptOutcome
  | ({ readonly kind: 'in_progress' } & RunningClaim)
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'from_future' }
  /** `tombstone` where there still is a record. */
  | { readonly kind: 'expired'; readonly tombstone?: Tombstone }
  /** `now` where it was this claim that found it tried too often. */
  | { readonly kind: 'parked'; readonly resource: string | undefined; readonly now?: true }
  | { readonly kind: 'unavailable'; readonly error: unknown };
