import type { Rejection } from '../errors';
import type { ServerEventListener } from '../events';
import type { MethodPolicy } from '../policy';
import type { IdempotencyStore, IsolationLevel, RecordedAnswer } from '../store/store';
import { type Completed, completeInOneTransaction, sizeOf } from './complete';
import type { FencedOutcome } from './fenced-transaction';
import { withinLease } from './within-lease';
import type { HeldByAttempt } from './running-attempt';

/** How a completion ended, after an unknown outcome was settled where it could be. */
export type HeldCompletion<R> =
  | ({ readonly kind: 'committed' } & Completed<R>)
  /** The function or the database failed, and everything was rolled back. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The commit was lost on the way, and it is known that it never will happen. */
  | { readonly kind: 'never_committed'; readonly error: unknown }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'unknown'; readonly error: unknown };

/** What to complete. */
export interface HeldCompletionRequest<Tx, Response, R extends Response | Rejection> {
  readonly policy: MethodPolicy;
  readonly store: IdempotencyStore<Tx>;
  readonly held: HeldByAttempt | undefined;
  readonly work: (tx: Tx) => Promise<R>;
  readonly serialize: (response: Response) => Buffer;
  readonly resource: () => string | undefined;
  readonly isolationLevel: IsolationLevel | undefined;
  readonly onEvent: ServerEventListener;
}

/** How long a lost commit is asked after, milliseconds: twice as long as a frozen completer can hold the row. */
const SETTLE_WITHIN_MS = 10_000;

/** Completes an attempt within its lease, and settles a commit whose answer was lost. */
export async function completeHeld<Tx extends object, Response, R extends Response | Rejection>(
  request: HeldCompletionRequest<Tx, Response, R>,
): Promise<HeldCompletion<R>> {
  const { policy, held } = request;
  if (held === undefined) return completeFor(request, policy.leaseMs);
  return (await withinLease(held.lease, (limitMs) => completeFor(request, limitMs))) ?? { kind: 'fenced' };
}

async function completeFor<Tx extends object, Response, R extends Response | Rejection>(
  request: HeldCompletionRequest<Tx, Response, R>,
  timeoutMs: number,
): Promise<HeldCompletion<R>> {
  const { policy, store, held, onEvent, isolationLevel, work, serialize, resource } = request;
  let completion: FencedOutcome<Completed<R>>;
  try {
    completion = await completeInOneTransaction<Tx, Response, R>({
      ...{ store, policy, work, serialize, resource, claim: held?.lease.claim() },
      limits: { maxWaitMs: Math.ceil(timeoutMs), timeoutMs: Math.ceil(timeoutMs), isolationLevel },
    });
  } catch (error) {
    return { kind: 'failed', error };
  }
  const settled = await afterSettling(request, completion);
  if (settled.kind === 'committed' && held !== undefined) tellSize(policy, settled.answer, onEvent);
  if (settled.kind === 'fenced') held?.lease.lose('somebody else has taken the claim');
  return settled;
}

/** Finds out what became of a commit whose answer was lost. Without a claim there is no record to ask. */
async function afterSettling<Tx, Response, R extends Response | Rejection>(
  { policy, store, held, onEvent }: HeldCompletionRequest<Tx, Response, R>,
  completion: FencedOutcome<Completed<R>>,
): Promise<HeldCompletion<R>> {
  if (completion.kind === 'committed') return { kind: 'committed', ...completion.value };
  if (completion.kind !== 'unknown') return completion;
  const { value, error } = completion;
  if (held === undefined) return { kind: 'unknown', error };
  onEvent({ type: 'fault', path: policy.path, what: 'the outcome of a commit is unknown and is being settled', error });
  const settlement = await store.settle(held.request, held.lease.claim(), SETTLE_WITHIN_MS);
  onEvent({ type: 'settled', path: policy.path, result: settlement.kind });
  switch (settlement.kind) {
    case 'committed':
      return { kind: 'committed', ...value };
    case 'never_committed':
      held.lease.replace(settlement.claim);
      return { kind: 'never_committed', error };
    case 'lost':
      return { kind: 'fenced' };
    case 'unsettled':
      return { kind: 'unknown', error: settlement.error };
  }
}

function tellSize(policy: MethodPolicy, answer: RecordedAnswer, onEvent: ServerEventListener): void {
  const { path, maxResponseBytes } = policy;
  const responseBytes = sizeOf(answer);
  const tooLarge = policy.recording === 'FULL' && responseBytes > maxResponseBytes;
  if (tooLarge) onEvent({ type: 'too_large', path, responseBytes, limit: maxResponseBytes });
  else onEvent({ type: 'recorded', path, responseBytes });
}
