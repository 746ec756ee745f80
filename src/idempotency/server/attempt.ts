import type { Metadata } from '@grpc/grpc-js';
import type { Rejection } from '../errors';
import type { PublishedFields } from '../events';
import type { HeldClaim, IdempotencyStore, RecordedAnswer } from '../store/store';
import { type Completion, completeInOneTransaction } from './complete';

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
  /** Request metadata, to read. */
  readonly metadata: Metadata;
  /** When the caller stops waiting. It does not end the attempt: its answer is recorded for the retry. */
  readonly deadline: Date | undefined;
  /**
   * Runs `work` in one transaction and records what it returns as the answer: both commit, or neither.
   *
   * **Returned is committed and replayed; thrown is rolled back, and the key is free again.** `work` may be run again
   * after a serialization failure or deadlock, so its effects belong in `tx` alone. To have a refusal recorded and replayed
   * like an answer, return `reject(…)`. Every statement must be awaited. On a
   * call without a claim it is a plain transaction.
   *
   * @returns what `work` returned. The caller is told those very bytes, whatever the handler does afterwards.
   * @throws what `work` threw; UnfinishedStatementError when a statement was not awaited; {@link CompletionFailedError} when the commit did not happen or can't be known
   */
  complete<R extends Response | Rejection>(work: (tx: Tx) => Promise<R>): Promise<R>;
  /**
   * Adds to the log line of this call: order id, payment id, state. Never a body, never card data. What is published as
   * `resource` (`payments/<id>`) before or inside the function of `complete` is recorded with the answer: it is what
   * RequestsService tells about the request. What is published inside `complete` counts only if it commits.
   */
  publish(fields: PublishedFields): void;
}

/** How the transaction of an attempt ended, whatever its handler made of that. */
export type AttemptEnding =
  | { readonly kind: 'not_completed' }
  /** Its function or the database failed, and everything was rolled back. */
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'committed'; readonly answer: RecordedAnswer }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'unknown'; readonly error: unknown };

/** `complete` did not record an answer. The library answers the caller; a handler lets it pass. */
export class CompletionFailedError extends Error {
  override readonly name = 'CompletionFailedError';
}

/** What an attempt is made of. */
export interface AttemptOptions<Tx, Response> {
  readonly scope: string;
  readonly requestId: string | undefined;
  readonly metadata: Metadata;
  readonly deadline: Date | undefined;
  readonly store: IdempotencyStore<Tx>;
  readonly claim: HeldClaim | undefined;
  readonly leaseMs: number;
  readonly serialize: (response: Response) => Buffer;
}

/** An attempt and what its runner needs to know of it. */
export interface RunningAttempt<Tx, Response> {
  readonly attempt: Attempt<Tx, Response>;
  /** What was published so far. */
  published(): PublishedFields;
  /** Waits for a completion that the handler did not await, then says how it ended. */
  ending(): Promise<AttemptEnding>;
}

/** Makes the attempt of one call. */
export function startAttempt<Tx extends object, Response>(
  options: AttemptOptions<Tx, Response>,
): RunningAttempt<Tx, Response> {
  const { scope, requestId, metadata, deadline, store, claim, leaseMs, serialize } = options;
  const limits = { maxWaitMs: leaseMs, timeoutMs: leaseMs };
  let published: PublishedFields = {};
  /** Published inside a transaction: true only if it commits. */
  let staged: PublishedFields = {};
  let isOver = false;
  let ending: AttemptEnding = { kind: 'not_completed' };
  let running: Promise<unknown> | undefined;

  const completeOnce = async <R extends Response | Rejection>(work: (tx: Tx) => Promise<R>): Promise<R> => {
    if (isOver) throw new CompletionFailedError('the handler has returned; complete before it does');
    if (running !== undefined) throw new CompletionFailedError('complete is already running; await it');
    if (ending.kind !== 'not_completed' && ending.kind !== 'failed') {
      throw new CompletionFailedError('this attempt has ended; complete it once');
    }
    const completing = completeInOneTransaction<Tx, Response, R>({
      ...{ store, claim, serialize, limits },
      work: (tx) => {
        staged = {};
        return work(tx);
      },
      resource: () => ({ ...published, ...staged })['resource'],
    });
    running = completing;
    try {
      const completion: Completion<R> = await completing;
      ending = completion;
      switch (completion.kind) {
        case 'committed':
          published = { ...published, ...staged };
          return completion.result;
        case 'fenced':
          throw new CompletionFailedError('the claim was lost; everything was rolled back');
        case 'unknown':
          throw new CompletionFailedError('the outcome of the commit is unknown', { cause: completion.error });
      }
    } catch (error) {
      if (!(error instanceof CompletionFailedError)) ending = { kind: 'failed', error };
      throw error;
    } finally {
      staged = {};
      running = undefined;
    }
  };

  const complete = <R extends Response | Rejection>(work: (tx: Tx) => Promise<R>): Promise<R> => {
    const completed = completeOnce(work);
    // Where a handler does not wait for it, its ending says how it failed; an unhandled rejection would end the process.
    completed.catch(() => undefined);
    return completed;
  };

  return {
    attempt: {
      scope,
      requestId,
      metadata,
      deadline,
      complete,
      publish: (fields) => {
        if (running === undefined) published = { ...published, ...fields };
        else staged = { ...staged, ...fields };
      },
    },
    published: () => published,
    ending: async () => {
      while (running !== undefined) await running.catch(() => undefined);
      isOver = true;
      return ending;
    },
  };
}
