import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { Rejection } from '../errors';
import type { HeldClaim, IdempotencyStore, RecordedAnswer, TransactionLimits } from '../store/store';
import { statusErrorStatus } from '../wire/error-details';
import { recordTrailers } from '../wire/recorded-trailers';
import { sealable } from './sealed-transaction';

/** How a completion ended. What the function itself threw is thrown on, after everything was rolled back. */
export type Completion<R> =
  /** Effects and answer are committed. */
  | { readonly kind: 'committed'; readonly result: R; readonly answer: RecordedAnswer }
  /** The claim had gone to somebody else; everything was rolled back. */
  | { readonly kind: 'fenced' }
  /** The connection was lost around COMMIT: nobody can say yet whether it happened. */
  | { readonly kind: 'unknown'; readonly error: unknown };

/** What a completion is made of. */
export interface CompletionRequest<Tx, Response, R extends Response | Rejection> {
  readonly store: IdempotencyStore<Tx>;
  /** Undefined for a call that runs unclaimed: then there is nothing to record and nothing to fence. */
  readonly claim: HeldClaim | undefined;
  readonly work: (tx: Tx) => Promise<R>;
  /** Response message → bytes of the wire. */
  readonly serialize: (response: Response) => Buffer;
  /** What the request is about, asked for when the function has returned. Default: not known. */
  readonly resource?: () => string | undefined;
  readonly limits: TransactionLimits;
}

/** How often a function is run before a serialization failure or deadlock is given to the caller. */
const RUNS = 4;

/** Leaves the transaction's function, so that it is rolled back. */
class Fenced extends Error {}

/**
 * Runs the function and records its answer in one transaction. The answer is serialized before the commit, and the fence
 * is the last statement: when the claim is lost, the whole transaction is.
 */
export async function completeInOneTransaction<Tx extends object, Response, R extends Response | Rejection>(
  request: CompletionRequest<Tx, Response, R>,
): Promise<Completion<R>> {
  const giveUpAt = performance.now() + request.limits.timeoutMs;
  for (let run = 1; ; run += 1) {
    try {
      return await completeOnce(request);
    } catch (error) {
      if (run === RUNS || !request.store.readFault(error).runAgain || performance.now() > giveUpAt) throw error;
      await delay(Math.random() * 20 * 2 ** run);
    }
  }
}

async function completeOnce<Tx extends object, Response, R extends Response | Rejection>(
  request: CompletionRequest<Tx, Response, R>,
): Promise<Completion<R>> {
  const { store, claim, limits } = request;
  let returned: { readonly result: R; readonly answer: RecordedAnswer } | undefined;
  try {
    await store.transaction(async (client) => {
      const { tx, seal } = sealable(client);
      const result = await request.work(tx);
      seal();
      const answer = { ...answerOf(result, request.serialize), resource: request.resource?.() };
      if (claim === undefined) await store.assertNotAborted(client);
      else if (!(await store.completeIfHeld(client, claim, answer, limits))) throw new Fenced();
      returned = { result, answer };
    }, limits);
  } catch (error) {
    if (error instanceof Fenced) return { kind: 'fenced' };
    if (returned === undefined || store.readFault(error).rolledBack) throw error;
    return { kind: 'unknown', error };
  }
  if (returned === undefined) throw new Error('the transaction ended without running its function');
  return { kind: 'committed', ...returned };
}

/** What is recorded of what the function returned. */
export function answerOf<Response>(
  returned: Response | Rejection,
  serialize: (response: Response) => Buffer,
): RecordedAnswer {
  if (returned instanceof Rejection) {
    const { code, details, metadata } = statusErrorStatus(returned.error);
    return { code, message: details, response: undefined, trailers: recordTrailers(metadata) };
  }
  return { code: status.OK, message: '', response: serialize(returned), trailers: undefined };
}
