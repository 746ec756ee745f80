import { setTimeout as delay } from 'node:timers/promises';
import { derivedKeyOf } from '../../derived-request-id';
import type { ServerEventListener } from '../../events';
import type { MethodPolicy } from '../../policy';
import type { IdempotencyStore } from '../../store/store';
import { CompletionFailedError, type PhaseOptions } from '../attempt';
import { type FencedOutcome, runFenced } from '../fenced-transaction';
import type { HeldByAttempt } from '../running-attempt';
import { withinLease } from '../within-lease';
import type { EffectContext } from './effect-context';
import { type Draft, encodeResult, type Journal } from './journal';
import { decodeValue } from './stored-value';

/** What the steps of an attempt work with. */
export interface StepsOptions<Tx> {
  readonly policy: MethodPolicy;
  readonly store: IdempotencyStore<Tx>;
  readonly held: HeldByAttempt;
  readonly journal: Journal;
  readonly deadline: Date | undefined;
  readonly onEvent: ServerEventListener;
  /** No further step can succeed: the claim is lost, or it is not known whether it is. */
  readonly onEnding: (ending: StepsEnding) => void;
}

/** How a step ended its attempt. */
export type StepsEnding =
  { readonly kind: 'fenced' } | { readonly kind: 'never_committed' | 'unknown'; readonly error: unknown };

/** The steps of one attempt, one at a time (design 4.10). */
export interface Steps<Tx> {
  /** @param resource what `work` has said the request is about, asked when it has; undefined where it has not */
  phase<Value>(
    name: string,
    work: (tx: Tx) => Promise<Value>,
    options: PhaseOptions<Value>,
    resource: () => string | undefined,
  ): Promise<Value>;
  effect<Value>(name: string, work: (requestId: string, context: EffectContext) => Promise<Value>): Promise<Value>;
}

/** How long a lost commit of a phase is asked after, milliseconds. */
const SETTLE_WITHIN_MS = 10_000;
/** How often the begin of an effect is stored again when the store could not be reached. */
const BEGIN_TRIES = 4;

/** Makes the steps of an attempt that has a claim. */
export function createSteps<Tx extends object>(options: StepsOptions<Tx>): Steps<Tx> {
  const { policy, store, held, journal, deadline, onEvent, onEnding } = options;
  const { lease, request } = held;

  const lost = (): CompletionFailedError => {
    lease.lose('somebody else has taken the claim');
    onEnding({ kind: 'fenced' });
    return new CompletionFailedError('the claim was lost; the step was rolled back');
  };

  const failed = (kind: 'never_committed' | 'unknown', error: unknown): CompletionFailedError => {
    onEnding({ kind, error });
    const what =
      kind === 'unknown' ? 'the outcome of the commit of a phase is unknown' : 'the commit of a phase did not happen';
    return new CompletionFailedError(what, { cause: error });
  };

  const settle = async (draft: Draft, error: unknown): Promise<void> => {
    const settlement = await store.settle(request, lease.claim(), SETTLE_WITHIN_MS);
    onEvent({ type: 'settled', path: policy.path, result: settlement.kind });
    switch (settlement.kind) {
      case 'never_committed':
        lease.replace(settlement.claim);
        if (settlement.recoveryPoint === draft.recoveryPoint) return;
        throw failed('never_committed', error);
      case 'committed':
      case 'lost':
        throw lost();
      case 'unsettled':
        throw failed('unknown', settlement.error);
    }
  };

  /** The encoded result, once it is known to be stored. */
  const storedBy = async (outcome: FencedOutcome<{ draft: Draft; encoded: string }>): Promise<string> => {
    switch (outcome.kind) {
      case 'fenced':
        throw lost();
      case 'never_committed':
        throw failed('never_committed', outcome.error);
      case 'unknown':
        await settle(outcome.value.draft, outcome.error);
        break;
      case 'committed':
    }
    journal.stored(outcome.value.draft);
    return outcome.value.encoded;
  };

  const begin = async (draft: Draft): Promise<void> => {
    for (let round = 1; ; round += 1) {
      try {
        if (await store.recordStepIfHeld(lease.claim(), draft)) return;
        throw lost();
      } catch (error) {
        const { outage, runAgain } = store.readFault(error);
        if (round === BEGIN_TRIES || !(outage || runAgain)) throw error;
        await delay(Math.random() * 20 * 2 ** round);
      }
    }
  };

  return {
    phase: async <Value>(
      name: string,
      work: (tx: Tx) => Promise<Value>,
      { begins }: PhaseOptions<Value>,
      resource: () => string | undefined,
    ): Promise<Value> => {
      const { stored } = journal.next('phase', name);
      if (stored !== undefined) return stored.value as Value;
      const result = await withinLease(lease, async (limitMs) => {
        const outcome = await runFenced({
          ...{ store, work, limits: { maxWaitMs: limitMs, timeoutMs: limitMs } },
          fence: async (client, value: Value, idleMs) => {
            const encoded = encodeResult(name, value);
            const effect = typeof begins === 'function' ? begins(value) : begins;
            const draft = journal.with({ kind: 'phase', name, result: encoded }, effect);
            const steps = { ...draft, resource: resource() };
            await store.recordStepInTransactionIfHeld(client, lease.claim(), steps, idleMs);
            return { draft, encoded };
          },
        });
        return storedBy(outcome);
      });
      if (result === undefined) throw lost();
      // What was stored and not what was returned: so this attempt and every later one go on with the same.
      return decodeValue(result) as Value;
    },

    effect: async <Value>(
      name: string,
      work: (requestId: string, context: EffectContext) => Promise<Value>,
    ): Promise<Value> => {
      const { stored, begun } = journal.next('effect', name);
      if (stored !== undefined) return stored.value as Value;
      if (!begun) {
        const draft = journal.with({ kind: 'effect', name, result: undefined });
        await begin(draft);
        journal.stored(draft);
      }
      // Nobody sends what it knows to be another's: two that send at once rely on the other side alone.
      if (lease.signal().aborted) throw lost();
      const key = derivedKeyOf({ scope: request.scope, path: policy.path, key: request.key }, name);
      const value = await work(key, { deadline, signal: lease.signal(), attempt: lease.claim().attempt });
      const result = encodeResult(name, value);
      journal.note(name, result);
      return decodeValue(result) as Value;
    },
  };
}
