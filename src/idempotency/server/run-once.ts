import type { Metadata } from '@grpc/grpc-js';
import { type Refusal, type Rejection, StatusError } from '../errors';
import type { PublishedFields, ServerEventListener } from '../events';
import type { MethodPolicy } from '../policy';
import type { ClaimRequest, HeldClaim, IdempotencyStore, RecordedAnswer } from '../store/store';
import { type Attempt, type AttemptEnding, startAttempt } from './attempt';
import { answerOf } from './complete';
import * as refusals from './refusals';

/** A handler: answers with a message, or with what `complete` returned, or throws. */
export type Handler<Tx, Request, Response> = (
  request: Request,
  attempt: Attempt<Tx, Response>,
) => Promise<Response | Rejection>;

/** What the caller is told. */
export type Reply =
  | {
      readonly kind: 'answer';
      readonly answer: RecordedAnswer;
      readonly replayed: boolean;
      readonly expiresAt?: Date;
      /** For the log: why the answer is another attempt's. */
      readonly reason?: 'CLAIM_LOST';
    }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }
  /** The handler said so on purpose. */
  | { readonly kind: 'status'; readonly error: StatusError }
  /** Something broke; the caller gets a fixed text. */
  | { readonly kind: 'fault' };

/** One run of a handler. */
export interface Run<Tx, Request, Response> {
  readonly policy: MethodPolicy;
  readonly scope: string;
  readonly requestId: string | undefined;
  readonly metadata: Metadata;
  readonly deadline: Date | undefined;
  readonly message: Request;
  readonly handler: Handler<Tx, Request, Response>;
  readonly serialize: (response: Response) => Buffer;
  readonly store: IdempotencyStore<Tx>;
  /** What was claimed; undefined for a call that runs unclaimed. */
  readonly claimed: { readonly request: ClaimRequest; readonly claim: HeldClaim } | undefined;
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
  const { policy, scope, requestId, metadata, deadline, store, serialize, claimed, onEvent } = run;
  const { attempt, ending, published } = startAttempt<Tx, Response>({
    ...{ scope, requestId, metadata, deadline, store, serialize },
    claim: claimed?.claim,
    leaseMs: policy.leaseMs,
  });
  const startedAt = performance.now();
  const result = await call(run.handler, run.message, attempt);
  const ended = await ending();
  const reply =
    claimed === undefined ? unclaimedReply(run, result, ended) : await claimedReply(run, claimed, result, ended);
  if (claimed !== undefined) {
    onEvent({ type: 'execution', path: policy.path, durationMs: performance.now() - startedAt });
  }
  return { reply, published: published() };
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

function unclaimedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  result: HandlerResult<Response>,
  ended: AttemptEnding,
): Reply {
  if (ended.kind === 'unknown') return unknownReply(run, ended.error);
  if (ended.kind === 'committed') return committedReply(run, result, ended.answer);
  if (result.kind === 'threw') return failureReply(run, result.error);
  if (ended.kind === 'failed') return failureReply(run, ended.error, SWALLOWED);
  try {
    return { kind: 'answer', answer: answerOf(result.response, run.serialize), replayed: false };
  } catch (error) {
    return failureReply(run, error);
  }
}

async function claimedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  { request, claim }: { request: ClaimRequest; claim: HeldClaim },
  result: HandlerResult<Response>,
  ended: AttemptEnding,
): Promise<Reply> {
  const { policy, onEvent } = run;
  switch (ended.kind) {
    case 'committed':
      return { ...committedReply(run, result, ended.answer), expiresAt: claim.expiresAt };
    case 'fenced':
      onEvent({ type: 'fenced', path: policy.path });
      return fencedReply(run, request);
    case 'unknown':
      return unknownReply(run, ended.error);
    case 'failed':
      await release(run, claim);
      return result.kind === 'threw' ? failureReply(run, result.error) : failureReply(run, ended.error, SWALLOWED);
    case 'not_completed':
      await release(run, claim);
      if (result.kind === 'threw') return failureReply(run, result.error);
      report(run, 'the handler returned without attempt.complete, so there is nothing to replay', undefined);
      return { kind: 'fault' };
  }
}

/** What was committed is the answer, whatever the handler did afterwards. */
function committedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  result: HandlerResult<Response>,
  answer: RecordedAnswer,
): Extract<Reply, { kind: 'answer' }> {
  if (result.kind === 'threw') report(run, 'the handler threw after its answer was committed', result.error);
  return { kind: 'answer', answer, replayed: false };
}

/** The claim went to another attempt: its answer is ours too, once there is one. */
async function fencedReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  request: ClaimRequest,
): Promise<Reply> {
  try {
    const found = await run.store.lookUp(request);
    switch (found.kind) {
      case 'completed':
        return { ...found, kind: 'answer', replayed: true, reason: 'CLAIM_LOST' };
      case 'mismatch':
        return { kind: 'refuse', refusal: refusals.mismatch() };
      case 'parked':
        return { kind: 'refuse', refusal: refusals.parked() };
      case 'expired':
        return { kind: 'refuse', refusal: refusals.expired() };
      case 'claimed':
      case 'absent':
        return { kind: 'refuse', refusal: refusals.claimLost() };
    }
  } catch (error) {
    report(run, 'the winner of a lost claim could not be looked up', error);
    return { kind: 'refuse', refusal: refusals.storeUnavailable() };
  }
}

/** Gives the key back. Where that fails, the lease does it later. */
async function release<Tx, Request, Response>(run: Run<Tx, Request, Response>, claim: HeldClaim): Promise<void> {
  try {
    const released = await run.store.releaseIfHeld(claim);
    run.onEvent({ type: released ? 'released' : 'fenced', path: run.policy.path });
  } catch (error) {
    report(run, 'a claim could not be released and waits for the end of its lease', error);
  }
}

/** Nobody knows yet whether it is recorded: neither a success nor a failure, and the key stays claimed. */
function unknownReply<Tx, Request, Response>(run: Run<Tx, Request, Response>, error: unknown): Reply {
  report(run, 'the outcome of a commit is unknown', error);
  return { kind: 'refuse', refusal: refusals.storeUnavailable() };
}

const SWALLOWED = 'the handler returned an answer although its completion had failed';

function failureReply<Tx, Request, Response>(
  run: Run<Tx, Request, Response>,
  error: unknown,
  what = 'the handler failed',
): Reply {
  if (error instanceof StatusError) return { kind: 'status', error };
  report(run, what, error);
  const { outage, runAgain } = run.store.readFault(error);
  return outage || runAgain ? { kind: 'refuse', refusal: refusals.storeUnavailable() } : { kind: 'fault' };
}

function report<Tx, Request, Response>(run: Run<Tx, Request, Response>, what: string, error: unknown): void {
  run.onEvent({ type: 'fault', path: run.policy.path, what, error });
}
