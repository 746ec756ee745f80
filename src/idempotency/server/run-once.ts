import { type Metadata, status } from '@grpc/grpc-js';
import { ClaimLostError, type Rejection, StatusError } from '../errors';
import type { PublishedFields, ServerEventListener } from '../events';
import type { MethodPolicy } from '../policy';
import type { IdempotencyStore, RecordedAnswer } from '../store/store';
import { answerOf } from './answer';
import type { Attempt } from './attempt';
import { halfFinishedError } from './half-finished-error';
import type { Handler, Rebuild } from './handler';
import { lostClaimReply } from './lost-claim';
import * as refusals from './refusals';
import { type Reply, withPause } from './reply';
import { type AttemptEnding, type HeldByAttempt, startAttempt } from './running-attempt';

/** One run of a handler. */
export interface Run<Tx, Request, Response> {
  readonly policy: MethodPolicy;
  readonly scope: string;
  readonly requestId: string | undefined;
  readonly metadata: Metadata;
  readonly deadline: Date | undefined;
  readonly message: Request;
  readonly handler: Handler<Tx, Request, Response>;
  readonly rebuild: Rebuild<Response> | undefined;
  readonly serialize: (response: Response) => Buffer;
  readonly store: IdempotencyStore<Tx>;
  /** What was claimed; undefined for a call that runs unclaimed. */
  readonly held: HeldByAttempt | undefined;
  readonly onEvent: ServerEventListener;
}

/**
 * The story of a run: the handler works, its completion commits or does not, and the caller is told what is recorded and
 * nothing else. What the handler returns or throws after a commit changes nothing; without a commit its claim is given
 * back. Never rejects.
 */
export async function runOnce<Tx extends object, Request, Response>(
  run: Run<Tx, Request, Response>,
): Promise<{ readonly reply: Reply; readonly published: PublishedFields }> {
  const { policy, held, onEvent } = run;
  const running = startAttempt<Tx, Response>(run);
  const startedAt = performance.now();
  const result = await call(run.handler, run.message, running.attempt);
  let ended = await running.ending();
  const isDetached = answersDetached(run, result, ended);
  if (isDetached) {
    await running.completeDetached(result.response);
    ended = await running.ending();
  }
  const left = held && { ...held, isDetached, isHalfFinished: running.isHalfFinished() };
  const reply = await replyOf(run, left, result, ended);
  if (held !== undefined) {
    const durationMs = performance.now() - startedAt;
    onEvent({ type: 'execution', path: policy.path, durationMs, leaseMs: policy.leaseMs });
  }
  return { reply, published: running.published() };
}

/** What a handler did. */
type HandlerResult<Response> =
  | { readonly kind: 'returned'; readonly response: Response | Rejection }
  | { readonly kind: 'threw'; readonly error: unknown };

async function call<Tx, Request, Response>(
  handler: Handler<Tx, Request, Response>,
  message: Request,
  attempt: Attempt<Tx, Response>,
): Promise<HandlerResult<Response>> {
  try {
    return { kind: 'returned', response: await handler(message, attempt) };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

/** The handler answered without completing, as its policy allows: its answer is recorded by itself. */
function answersDetached<Tx, Request, Response>(
  { policy, held }: Run<Tx, Request, Response>,
  result: HandlerResult<Response>,
  { kind }: AttemptEnding,
): result is Extract<HandlerResult<Response>, { kind: 'returned' }> {
  return held !== undefined && policy.allowDetached && kind === 'not_completed' && result.kind === 'returned';
}

/** A handler may throw what can't even be looked at, such as a proxy: its caller is answered, and its claim runs out. */
async function replyOf<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  left: LeftBehind | undefined,
  result: HandlerResult<Response>,
  ended: AttemptEnding,
): Promise<Reply> {
  try {
    return left === undefined ? unclaimedReply(run, result, ended) : await heldReply(run, left, result, ended);
  } catch (error) {
    report(run, 'the handler failed with what can not be read', error);
    return { kind: 'fault' };
  }
}

function unclaimedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  result: HandlerResult<Response>,
  ended: AttemptEnding,
): Reply {
  if (ended.kind === 'unknown' || ended.kind === 'never_committed') return unknownReply(run, ended.error);
  if (ended.kind === 'committed') return committedReply(run, result, ended.answer);
  if (result.kind === 'threw') return failureReply(run, result.error);
  if (ended.kind === 'failed') return failureReply(run, ended.error, SWALLOWED);
  try {
    return { kind: 'answer', answer: answerOf(result.response, run.serialize), replayed: false };
  } catch (error) {
    return failureReply(run, error);
  }
}

/** What an attempt leaves behind. */
interface LeftBehind extends HeldByAttempt {
  /** A step of the request is stored, so the next attempt resumes it. */
  readonly isHalfFinished: boolean;
  /** Its handler answered without completing. */
  readonly isDetached: boolean;
}

async function heldReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  held: LeftBehind,
  result: HandlerResult<Response>,
  ended: AttemptEnding,
): Promise<Reply> {
  const { policy, onEvent } = run;
  switch (ended.kind) {
    case 'committed':
      return { ...committedReply(run, result, ended.answer), expiresAt: held.lease.claim().expiresAt };
    case 'fenced':
      onEvent({ type: 'fenced', path: policy.path });
      return fencedReply(run, held);
    case 'unknown':
      return unknownReply(run, ended.error);
    case 'never_committed':
    case 'failed':
    case 'not_completed':
      return failedReply(run, held, result, ended);
  }
}

/** The ways to end without an answer. */
type WithoutAnswer = Extract<AttemptEnding, { kind: 'never_committed' | 'failed' | 'not_completed' }>;

async function failedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  held: LeftBehind,
  result: HandlerResult<Response>,
  ended: WithoutAnswer,
): Promise<Reply> {
  const left = await release(run, held, ended.kind === 'never_committed' || isOutage(run.store, result));
  // Its failure may be what its heir has done, such as a payment that is there already: no answer of this request.
  if (left.kind === 'overtaken') {
    if (result.kind === 'threw') reportLate(run, result.error);
    return fencedReply(run, held);
  }
  const record = held.isHalfFinished && left.kind !== 'unknown' ? ({ state: 'claimed' } as const) : undefined;
  const reply = { ...ownFailureReply(run, held, result, ended), record };
  return left.kind === 'paused' ? withPause(reply, left.pauseMs) : reply;
}

/** An attempt that nobody has overtaken failed: its failure is the answer, to this caller alone. */
function ownFailureReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  { isDetached, isHalfFinished }: LeftBehind,
  result: HandlerResult<Response>,
  ended: WithoutAnswer,
): Reply {
  if (ended.kind === 'never_committed') return { kind: 'refuse', refusal: refusals.storeUnavailable() };
  if (isHalfFinished && result.kind === 'threw' && result.error instanceof StatusError) {
    return { kind: 'status', error: halfFinishedError(result.error) };
  }
  if (result.kind === 'threw') return failureReply(run, result.error);
  if (ended.kind === 'failed') return failureReply(run, ended.error, isDetached ? UNRECORDED : SWALLOWED);
  report(run, TEACHING, undefined);
  return { kind: 'fault' };
}

/** What was committed is the answer, whatever the handler did afterwards. */
function committedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  result: HandlerResult<Response>,
  answer: RecordedAnswer,
): Extract<Reply, { kind: 'answer' }> {
  if (result.kind === 'threw') report(run, 'the handler threw after its answer was committed', result.error);
  return { kind: 'answer', answer, replayed: false, record: run.held && { state: 'completed' } };
}

/** The claim went to another attempt: its answer is ours too, once there is one. */
function fencedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  { request }: HeldByAttempt,
): Promise<Reply> {
  return lostClaimReply(run.store, request, rebuildOf(run), (what, error) => report(run, what, error));
}

function rebuildOf<Tx, Request, Response>(run: Run<Tx, Request, Response>) {
  const { rebuild, scope, metadata, serialize } = run;
  if (rebuild === undefined) return undefined;
  return async (resource: string) => serialize(await rebuild(resource, { scope, metadata }));
}

/** What became of the claim of an attempt without an answer; `unknown` where its lease runs out later. */
type Released =
  | { readonly kind: 'overtaken' | 'given_back' | 'unknown' }
  /** Nobody may take it over for so long. */
  | { readonly kind: 'paused'; readonly pauseMs: number };

/**
 * Gives the key back, or, once a step is stored, ends the lease only. Where somebody was away, the database or who the
 * handler asked, the next attempt waits: each counts, and an outage is not to use them up.
 */
async function release<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  { lease, isHalfFinished }: LeftBehind,
  isOutage: boolean,
): Promise<Released> {
  const { store, onEvent, policy } = run;
  const { path } = policy;
  try {
    // A renewal under way would take the row for a lost one.
    await lease.pause();
    const claim = lease.claim();
    if (isHalfFinished && isOutage) {
      const pauseMs = await store.pauseIfHeld(claim);
      onEvent(pauseMs === undefined ? { type: 'fenced', path } : { type: 'lease_ended', path, pausedMs: pauseMs });
      if (pauseMs === undefined) return { kind: 'overtaken' };
      return pauseMs === 0 ? { kind: 'given_back' } : { kind: 'paused', pauseMs };
    }
    const released = isHalfFinished ? (await store.endLeasesIfHeld([claim])) > 0 : await store.releaseIfHeld(claim);
    const kept = isHalfFinished ? 'lease_ended' : 'released';
    onEvent({ type: released ? kept : 'fenced', path });
    return { kind: released ? 'given_back' : 'overtaken' };
  } catch (error) {
    report(run, 'a claim could not be released; it ends with its lease at the latest', error);
    return { kind: 'unknown' };
  }
}

/** A handler that says UNAVAILABLE asks its caller to come again, and so do we where the database was at fault. */
function isOutage<Tx>({ readFault }: Pick<IdempotencyStore<Tx>, 'readFault'>, result: HandlerResult<unknown>): boolean {
  if (result.kind !== 'threw') return false;
  if (result.error instanceof StatusError) return result.error.code === status.UNAVAILABLE;
  const { outage, runAgain } = readFault(result.error);
  return outage || runAgain;
}

/** Nobody knows yet whether it is recorded: neither a success nor a failure, and the key stays claimed. */
function unknownReply<Tx, Request, Response>(run: Run<Tx, Request, Response>, error: unknown): Reply {
  report(run, 'the outcome of a commit is unknown', error);
  return outageReply(run);
}

/** Without a claim nothing keeps a resent call from running twice, so only a method that may is told to come again. */
function outageReply<Tx, Request, Response>({ policy, held }: Run<Tx, Request, Response>): Reply {
  const mayRepeat = held !== undefined || policy.level !== 'UNKNOWN';
  return { kind: 'refuse', refusal: mayRepeat ? refusals.storeUnavailable() : refusals.unclaimedOutcomeUnknown() };
}

const SWALLOWED = 'the handler returned an answer although its completion had failed';
const UNRECORDED = 'the answer of a detached handler could not be recorded, so its retry runs again';
const TEACHING =
  'the handler returned without attempt.complete, so there is nothing to replay and the key is free again: ' +
  'write and return inside `return attempt.complete(async (tx) => …)`, or set allow_detached in its policy';

function failureReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  error: unknown,
  what = 'the handler failed',
): Reply {
  if (error instanceof StatusError) return { kind: 'status', error };
  report(run, what, error);
  const { outage, runAgain } = run.store.readFault(error);
  return outage || runAgain ? outageReply(run) : { kind: 'fault' };
}

/** What a lost claim brings about by itself is no fault. */
function reportLate<Tx, Request, Response>(run: Run<Tx, Request, Response>, error: unknown): void {
  if (error instanceof StatusError || error instanceof ClaimLostError) return;
  report(run, 'the handler failed after its claim was lost', error);
}

function report<Tx, Request, Response>(run: Run<Tx, Request, Response>, what: string, error: unknown): void {
  run.onEvent({ type: 'fault', path: run.policy.path, what, error });
}
