import type { Metadata } from '@grpc/grpc-js';
import type { Rejection } from '../errors';
import type { PublishedFields } from '../events';
import type { IsolationLevel } from '../store/store';
import type { EffectContext } from './steps/effect-context';

/**
 * What a handler sees of the call it runs for.
 *
 * @typeParam Tx what it writes with; a Prisma transaction client
 * @typeParam Response the method's response message
 */
export interface Attempt<Tx, Response> {
  /** The account of the caller. */
  readonly scope: string;
  /** The caller's key; undefined for a method that ignores keys, or where the key was optional and left out. */
  readonly requestId: string | undefined;
  /**
   * Request metadata, to read: of this attempt alone. It has no part in the fingerprint, so a call with other metadata is the
   * same request and gets the recorded answer. What changes the effect, such as a dry run, belongs into the request message.
   */
  readonly metadata: Metadata;
  /** When the caller stops waiting. It does not end the attempt: its answer is recorded for the retry. */
  readonly deadline: Date | undefined;
  /**
   * Fires, with a `ClaimLostError`, when this attempt can't complete any more: its claim is with another one. Work that
   * is not done yet had best stop. It does not fire when the caller hangs up. A getter, since few handlers look.
   */
  readonly signal: AbortSignal;
  /**
   * Runs `work` in one transaction and records what it returns as the answer: both commit, or neither.
   *
   * **Returned is committed and replayed; thrown is rolled back, and the key is free again.** `work` may be run again
   * after a serialization failure or deadlock, so its effects belong in `tx` alone. To have a refusal recorded and replayed
   * like an answer, return `reject(…)`. Every statement must be awaited. On a
   * call without a claim it is a plain transaction.
   *
   * It may take as long as the lease: then it is rolled back. Where the answer to its commit is lost, it is found out
   * what became of it before this returns or throws.
   *
   * @returns what `work` returned. The caller is told those very bytes, whatever the handler does afterwards.
   * @throws what `work` threw; UnfinishedStatementError when a statement was not awaited; {@link CompletionFailedError} when the commit did not happen or can't be known
   */
  complete<R extends Response | Rejection>(work: (tx: Tx) => Promise<R>, options?: CompleteOptions): Promise<R>;
  /**
   * A local step of a request that also reaches outside (design 4.10): what `work` writes, what it returns and the point to
   * resume from commit together. An attempt that takes over gets the stored result and does not run it again.
   *
   * Steps are taken one at a time, always in the same order, each under a name of its own that never changes. Results are
   * undefined, null, booleans, numbers, strings, bigint, bytes, dates, and plain arrays and objects of these. From the first
   * stored step on a throw does not give the key back: the next attempt resumes.
   *
   * Where an effect follows at once, `begins` spares a commit: that it has begun is stored with this phase.
   *
   * @returns what was stored
   * @throws what `work` threw; UnstorableValueError; StepOrderError; {@link CompletionFailedError} when the claim is lost or the commit can't be known
   */
  phase<Value>(name: string, work: (tx: Tx) => Promise<Value>, options?: PhaseOptions<Value>): Promise<Value>;
  /**
   * A step outside our database: a charge, a mail, a call to another service. `work` sends it under `requestId`, a key
   * that is the same for every attempt of this request, so that the other side can tell a repetition. That it has begun
   * is stored before it is sent; its result is stored with the next step or the completion. It may be sent again by a
   * later attempt whose predecessor died before that.
   *
   * What it sends must come from the request and from stored results alone, and the other side must keep keys at least as
   * long as this request may be resumed.
   *
   * @returns what `work` returned, as it is stored
   * @throws what `work` threw; as `phase`; TypeError on a call without a claim
   */
  effect<Value>(name: string, work: (requestId: string, context: EffectContext) => Promise<Value>): Promise<Value>;
  /**
   * The key of a further call that belongs to this request: the one that `effect` gives under the same name.
   *
   * @throws TypeError on a call without a key, and for what can't be a name
   */
  derivedKey(name: string): string;
  /**
   * Adds to the log line of this call: order id, payment id, state. Never a body, never card data. What is published as
   * `resource` (`payments/<id>`) is stored at once, so that duplicates are told of it while this attempt runs, and recorded
   * with the answer. What is published inside `complete` counts only if it commits.
   *
   * Nothing waits for it, but `complete` does; a resource that could not be stored is in the log.
   */
  publish(fields: PublishedFields): void;
}

/** How `complete` runs its transaction. */
export interface CompleteOptions {
  /** Default: what the database gives, READ COMMITTED unless it was told otherwise. */
  readonly isolationLevel?: IsolationLevel;
}

/** How `phase` is stored. */
export interface PhaseOptions<Value> {
  /**
   * The effect that comes next, stored as begun in the commit of the phase; or what says so from the value of the phase,
   * undefined where none follows. Named, it must be the next step, in this attempt and in every later one. Default: none;
   * an effect stores its begin by itself, in one more commit.
   */
  readonly begins?: string | ((value: NoInfer<Value>) => string | undefined);
}

/** `complete` did not record an answer. The library answers the caller; a handler lets it pass. */
export class CompletionFailedError extends Error {
  override readonly name = 'CompletionFailedError';
}
