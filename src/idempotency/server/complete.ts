import { status } from '@grpc/grpc-js';
import type { Rejection } from '../errors';
import type { MethodPolicy } from '../policy';
import type { HeldClaim, IdempotencyStore, RecordedAnswer, TransactionLimits } from '../store/store';
import { answerOf } from './answer';
import { type FencedOutcome, runFenced } from './fenced-transaction';

/** What was returned, and what is recorded of it. */
export interface Completed<R> {
  readonly result: R;
  readonly answer: RecordedAnswer;
}

/** What a completion is made of. */
export interface CompletionRequest<Tx, Response, R extends Response | Rejection> {
  readonly store: IdempotencyStore<Tx>;
  readonly policy: Pick<MethodPolicy, 'recording' | 'maxResponseBytes'>;
  /** Undefined for a call that runs unclaimed: then there is nothing to record and nothing to fence. */
  readonly claim: HeldClaim | undefined;
  readonly work: (tx: Tx) => Promise<R>;
  /** Response message → bytes of the wire. */
  readonly serialize: (response: Response) => Buffer;
  /** What the request is about, asked for when the function has returned. Default: not known. */
  readonly resource?: () => string | undefined;
  readonly limits: TransactionLimits;
}

/**
 * Runs the function and records its answer in one transaction. The answer is serialized before the commit, and the fence
 * is the last statement: when the claim is lost, the whole transaction is.
 */
export function completeInOneTransaction<Tx extends object, Response, R extends Response | Rejection>(
  request: CompletionRequest<Tx, Response, R>,
): Promise<FencedOutcome<Completed<R>>> {
  const { store, claim, limits, work, policy } = request;
  return runFenced({
    ...{ store, limits, work },
    fence: async (client, result: R, idleMs) => {
      const answer = { ...answerOf<Response>(result, request.serialize), resource: request.resource?.() };
      if (claim === undefined) {
        await store.assertNotAborted(client);
        return { result, answer };
      }
      const terms = { idleMs, keepAnswer: isKept(policy, answer) };
      await store.completeIfHeld(client, claim, answer, terms);
      return { result, answer };
    },
  });
}

/**
 * Whether the answer itself is recorded. Refusals always are, within the limit: there is nothing to rebuild them from.
 *
 * @throws when only the resource is to be recorded, and the handler has not said what it is
 */
function isKept(
  { recording, maxResponseBytes }: Pick<MethodPolicy, 'recording' | 'maxResponseBytes'>,
  answer: RecordedAnswer,
): boolean {
  if (recording === 'COMPACT' && answer.code === (status.OK as number)) {
    if (answer.resource !== undefined) return false;
    throw new Error('recording COMPACT rebuilds answers from their resource: publish it before complete returns');
  }
  return sizeOf(answer) <= maxResponseBytes;
}

/** What an answer takes in its record, bytes. */
export function sizeOf({ message, response, trailers }: RecordedAnswer): number {
  return Buffer.byteLength(message) + (response?.length ?? 0) + (trailers?.length ?? 0);
}
