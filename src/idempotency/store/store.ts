import type { RequestKey } from '../key';
import type { MethodPolicy } from '../policy';

/**
 * The store of records, and what it promises. Postgres is the authority: one row per (scope, method, key), one clock,
 * and a token that is new at every claim and takeover.
 *
 * 1. `claim` gives a key to one owner at a time. It commits before it returns, so a handler never runs unclaimed.
 * 2. A claim whose lease is over may go to another owner. The old owner is not asked, and need not be alive.
 * 3. A token proves ownership at the moment of a write and no longer: `completeIfHeld` and `releaseIfHeld` change
 *    nothing once the token is another or the record is no longer claimed.
 * 4. `completeIfHeld` runs in the caller's transaction, as its last statement: the effects of an attempt and its answer
 *    commit together or not at all.
 * 5. A recorded answer is handed out only for the same request, judged by its fingerprint.
 *
 * What a crash leaves behind: before the claim committed, nothing; after it, a claimed record that is free again when
 * its lease is over; after the completion committed, the recorded answer.
 *
 * @typeParam Tx what a handler gets to write with; a Prisma transaction client
 */
export interface IdempotencyStore<Tx> {
  /** Claims a key for a new attempt, or says why not. Never throws: an unreachable store is an outcome. */
  claim(request: ClaimRequest): Promise<ClaimOutcome>;
  /** What became of a key whose claim was lost. Rejects when the store can't be read. */
  lookUp(request: ClaimRequest): Promise<LookUpOutcome>;
  /** Where a request stands, for somebody who shows its key and not its content. Rejects when the store can't be read. */
  lookUpStatus(subject: StatusSubject): Promise<RequestStatus>;
  /** Runs `work` in one transaction of the business database; what it throws rolls back. */
  transaction<R>(work: (tx: Tx) => Promise<R>, limits: TransactionLimits): Promise<R>;
  /** Records the answer inside `tx`. False when the claim is no longer held: `tx` must then be rolled back. */
  completeIfHeld(tx: Tx, claim: HeldClaim, answer: RecordedAnswer, limits: TransactionLimits): Promise<boolean>;
  /** Fails when a statement of `tx` has failed, even one whose error was swallowed. */
  assertNotAborted(tx: Tx): Promise<void>;
  /** What an error of the database says about the transaction or statement that it ended. */
  readFault(error: unknown): DatabaseFault;
  /** Gives the key back. False when the claim was no longer held. */
  releaseIfHeld(claim: HeldClaim): Promise<boolean>;
}

/** What is claimed, and by which rules. */
export interface ClaimRequest {
  readonly policy: MethodPolicy;
  /** The account of the caller. */
  readonly scope: string;
  readonly key: RequestKey;
  /** As made by `fingerprint`. */
  readonly fingerprint: Buffer;
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
export interface HeldClaim {
  /** `YYYY-MM-DD`; with `id` the primary key of the record. */
  readonly bucket: string;
  readonly id: string;
  readonly ownerToken: string;
  /** Which claim of this key it is, from 1. */
  readonly attempt: number;
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
}

/** What an error says. All false for one that did not come from the database. */
export interface DatabaseFault {
  /** The transaction was chosen to be run again: a serialization failure or a deadlock. */
  readonly runAgain: boolean;
  /** The transaction did not commit, for sure. False where the answer to a COMMIT was lost. */
  readonly rolledBack: boolean;
  /** The database could not be reached, or went away: neither the caller's fault nor the handler's. */
  readonly outage: boolean;
}

/** What a look-up finds of a record, after the request was found to be the same. */
export type LookUpOutcome =
  | { readonly kind: 'completed'; readonly answer: RecordedAnswer; readonly expiresAt: Date }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'parked' }
  /** Running elsewhere; `leaseLeftMs` is 0 when the lease is over. */
  | { readonly kind: 'claimed'; readonly leaseLeftMs: number; readonly resource: string | undefined }
  | { readonly kind: 'absent' };

/** What became of a claim. */
export type ClaimOutcome =
  | { readonly kind: 'granted'; readonly claim: HeldClaim; readonly takeover: boolean }
  | { readonly kind: 'completed'; readonly answer: RecordedAnswer; readonly expiresAt: Date }
  | { readonly kind: 'in_progress'; readonly leaseLeftMs: number; readonly resource: string | undefined }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'from_future' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'parked' }
  | { readonly kind: 'unavailable'; readonly error: unknown };
