import type {
  ClaimOutcome,
  ClaimRequest,
  CompletionTerms,
  DatabaseFault,
  HalfFinishedRequest,
  HalfFinishedTerms,
  HeldClaim,
  LookUpOutcome,
  Place,
  RecordedAnswer,
  Renewal,
  RenewalResult,
  RequestStatus,
  Settlement,
  StatusSubject,
  StoredSteps,
  StrandedRequests,
  TakeoverOutcome,
  TransactionLimits,
} from './outcomes';

export type * from './outcomes';

/**
 * The store of records, and what it promises. Postgres is the authority: one row per (scope, method, key), one clock,
 * and a token that is new at every claim and takeover.
 *
 * 1. `claim` gives a key to one owner at a time. It commits before it returns, so a handler never runs unclaimed.
 * 2. A claim whose lease is over may go to another owner. The old owner is not asked, and need not be alive.
 * 3. A token proves ownership at the moment of a write and no longer: every method whose name ends in `IfHeld` changes
 *    nothing once the token is another or the record is no longer claimed.
 * 4. `completeIfHeld` runs in the caller's transaction, as its last statement, and fails it where the claim is not held:
 *    the effects of an attempt and its answer commit together or not at all.
 * 5. A recorded answer is handed out only for the same request, judged by its fingerprint.
 * 6. `settle` finds out what became of a commit whose answer was lost, and guesses nothing: it takes the attempt's own
 *    token away, which waits for whatever the server still does and forbids whatever it has not begun.
 *
 * What a crash leaves behind: before the claim committed, nothing; after it, a claimed record that is free again when
 * its lease is over; after a step committed, a record that is resumed from there and never given back, and parked for a
 * person when it was tried too often; after the completion committed, the recorded answer.
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
  /** Where the record of a request is, so that it can be waited for. */
  placeOf(subject: StatusSubject): Place;
  /** Those among the places where an attempt still runs; the others are worth a claim. Rejects when the store can't be read. */
  stillRunning(places: readonly Place[]): Promise<readonly Place[]>;
  /**
   * Runs `work` in one transaction of the business database; what it throws rolls back.
   *
   * @param isIdle whether all statements that `work` started have ended; asked once it has
   */
  transaction<R>(work: (tx: Tx) => Promise<R>, limits: TransactionLimits, isIdle?: () => boolean): Promise<R>;
  /**
   * Records the answer inside `tx`, as its last statement. Where the claim is not held, `tx` fails, here or at its COMMIT,
   * with an error that `readFault` calls fenced.
   */
  completeIfHeld(tx: Tx, claim: HeldClaim, answer: RecordedAnswer, terms: CompletionTerms): Promise<void>;
  /** Records steps of a half-finished request inside `tx`, as its last statement, which fails like that of a completion. */
  recordStepInTransactionIfHeld(tx: Tx, claim: HeldClaim, steps: StoredSteps, idleMs: number): Promise<void>;
  /** Records steps by itself, durably. False when the claim was no longer held. May be repeated. */
  recordStepIfHeld(claim: HeldClaim, steps: StoredSteps): Promise<boolean>;
  /** Fails when a statement of `tx` has failed, even one whose error was swallowed. */
  assertNotAborted(tx: Tx): Promise<void>;
  /** What an error of the database says about the transaction or statement that it ended. */
  readFault(error: unknown): DatabaseFault;
  /** Prolongs leases, all in one statement. One result per claim. Rejects when the store can't be reached. */
  renewIfHeld(renewals: readonly Renewal[]): Promise<readonly RenewalResult[]>;
  /** Ends leases at once and takes the tokens away. Returns how many. Rejects when the store can't be reached. */
  endLeasesIfHeld(claims: readonly HeldClaim[]): Promise<number>;
  /**
   * Ends the lease of an attempt that stored a step and was ended by an outage, takes its token away, and lets nobody take
   * the request over for a while, the longer the more often it was tried. Returns for how long, milliseconds; undefined
   * when the claim was no longer held. Rejects when the store can't be reached.
   */
  pauseIfHeld(claim: HeldClaim): Promise<number | undefined>;
  /** Says what a running request is about. False when the claim was no longer held. */
  publishIfHeld(claim: HeldClaim, resource: string): Promise<boolean>;
  /** Finds out whether a completion of this claim has committed. Never throws: not to know is an outcome. */
  settle(request: ClaimRequest, claim: HeldClaim, withinMs: number): Promise<Settlement>;
  /** Half-finished requests that nobody has come back for, oldest first. Rejects when the store can't be read. */
  findHalfFinished(terms: HalfFinishedTerms): Promise<readonly HalfFinishedRequest[]>;
  /**
   * Half-finished requests of all methods but these whose lease has been over for so long that nobody can be there to
   * resume them. Rejects when the store can't be read.
   */
  countStranded(paths: readonly string[], overdueMs: number): Promise<readonly StrandedRequests[]>;
  /**
   * Takes over a half-finished request whose lease is over, as `claim` would, and never makes a record: what was given
   * back or forgotten meanwhile stays so. Never throws.
   */
  takeOverHalfFinished(request: ClaimRequest): Promise<TakeoverOutcome>;
  /**
   * Gives the key back, or, once a step is recorded, ends the lease only. False when the claim was no longer held. Rejects
   * when the store can't do so now, like the others that end a lease; it is then tried again in the background.
   */
  releaseIfHeld(claim: HeldClaim): Promise<boolean>;
}
