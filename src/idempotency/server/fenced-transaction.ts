import { setTimeout as delay } from 'node:timers/promises';
import { LONGEST_TIMER_MS } from '../longest-timer';
import type { IdempotencyStore, TransactionLimits } from '../store/store';
import { sealable, type SealedTransaction } from './sealed-transaction';

/** How a fenced transaction ended. What its function threw is thrown on, after everything was rolled back. */
export type FencedOutcome<R> =
  | { readonly kind: 'committed'; readonly value: R }
  /** The claim had gone to somebody else; everything was rolled back. */
  | { readonly kind: 'fenced' }
  /** It did not come as far as COMMIT in its time, and now never will. */
  | { readonly kind: 'never_committed'; readonly error: unknown }
  /** The connection was lost around COMMIT, or COMMIT gives no answer: nobody can say yet whether it happened. */
  | { readonly kind: 'unknown'; readonly value: R; readonly error: unknown };

/** A transaction and its fence. */
export interface FencedTransaction<Tx, R, Value> {
  readonly store: Pick<IdempotencyStore<Tx>, 'transaction' | 'readFault'>;
  readonly limits: TransactionLimits;
  /** What is done in it; may be run again after a serialization failure or deadlock. */
  readonly work: (tx: Tx) => Promise<R>;
  /**
   * Its last statement, given what the function returned. It fails, now or with COMMIT, when the claim is not held.
   *
   * @param idleMs how long the server may then wait for COMMIT
   */
  readonly fence: (client: Tx, returned: R, idleMs: number) => Promise<Value>;
}

/** How often a function is run before a serialization failure or deadlock is given to the caller. */
const RUNS = 4;

/**
 * Once the fence has passed, COMMIT is one round trip away. A process that is frozen there holds the row, so the server
 * ends it after this; and the outcome of a COMMIT without an answer is settled after it. Milliseconds.
 */
const COMMIT_WITHIN_MS = 5_000;

/** Prisma ends a transaction at its limit, but waits for a statement that never ends; so we wait no longer than this more. */
const STUCK_AFTER_MS = 1_000;

/** Leaves the transaction's function, so that it is rolled back. */
class AbandonedError extends Error {}

/** Runs the function, with its fence as the last statement: when the claim is lost, the whole transaction is. */
export async function runFenced<Tx extends object, R, Value>(
  request: FencedTransaction<Tx, R, Value>,
): Promise<FencedOutcome<Value>> {
  const giveUpAt = performance.now() + request.limits.timeoutMs;
  let { limits } = request;
  for (let run = 1; ; run += 1) {
    try {
      return await runOnce({ ...request, limits });
    } catch (error) {
      if (run === RUNS || !request.store.readFault(error).runAgain) throw error;
      await delay(Math.random() * 20 * 2 ** run);
      // All runs together take no longer than one may.
      const leftMs = Math.ceil(giveUpAt - performance.now());
      if (leftMs <= 0) throw error;
      limits = { ...limits, maxWaitMs: leftMs, timeoutMs: leftMs };
    }
  }
}

async function runOnce<Tx extends object, R, Value>({
  store,
  limits,
  work,
  fence,
}: FencedTransaction<Tx, R, Value>): Promise<FencedOutcome<Value>> {
  const commitWithinMs = Math.min(COMMIT_WITHIN_MS, limits.timeoutMs);
  const timer = startTimer();
  let passed: { readonly value: Value } | undefined;
  let abandoned = false;
  /** Before its fence, an error that reads like its refusal quotes somebody. */
  let isFencing = false;
  let sealed: SealedTransaction<Tx> | undefined;
  const inTransaction = async (client: Tx): Promise<void> => {
    const { tx, seal } = (sealed = sealable(client));
    const returned = await work(tx);
    seal();
    isFencing = true;
    const value = await fence(client, returned, commitWithinMs);
    if (abandoned) throw new AbandonedError();
    passed = { value };
    timer.failAfter(commitWithinMs, 'COMMIT gave no answer');
  };
  const transaction = store.transaction(
    (client) => inTransaction(client).finally(() => sealed?.close()),
    limits,
    () => sealed?.isIdle() === true,
  );
  timer.failAfter(limits.maxWaitMs + limits.timeoutMs + STUCK_AFTER_MS, 'a transaction did not come to its end');
  try {
    await Promise.race([transaction, timer.late]);
  } catch (error) {
    // The late end of a transaction that is not waited for any more.
    transaction.catch(() => undefined);
    abandoned = true;
    if (isFencing && store.readFault(error).fenced) return { kind: 'fenced' };
    if (passed === undefined && error instanceof LateError) return { kind: 'never_committed', error };
    if (passed === undefined || store.readFault(error).rolledBack) throw error;
    return { kind: 'unknown', ...passed, error };
  } finally {
    timer.stop();
  }
  if (passed === undefined) throw new Error('the transaction ended without running its function');
  return { kind: 'committed', ...passed };
}

/** Nothing came in time. */
class LateError extends Error {}

/** One timer, set anew for each part of the way. */
function startTimer(): { failAfter(ms: number, what: string): void; stop(): void; readonly late: Promise<never> } {
  let handle: NodeJS.Timeout | undefined;
  let fail: (error: Error) => void = () => undefined;
  const late = new Promise<never>((_, reject) => (fail = reject));
  late.catch(() => undefined);
  return {
    late,
    failAfter: (ms, what) => {
      clearTimeout(handle);
      handle = setTimeout(() => fail(new LateError(`${what} within ${ms} ms`)), Math.min(ms, LONGEST_TIMER_MS));
    },
    stop: () => clearTimeout(handle),
  };
}
