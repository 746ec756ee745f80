import type { Metadata } from '@grpc/grpc-js';
import { derivedKeyOf } from '../derived-request-id';
import type { Rejection } from '../errors';
import type { PublishedFields, ServerEventListener } from '../events';
import type { MethodPolicy } from '../policy';
import type { ClaimRequest, IdempotencyStore } from '../store/store';
import { type Attempt, type CompleteOptions, CompletionFailedError, type PhaseOptions } from './attempt';
import { completeHeld, type HeldCompletion } from './complete-held';
import type { KeptLease } from './kept-lease';
import { openJournal } from './steps/journal';
import { createSteps, type StepsEnding } from './steps/steps';
import { unlessAborted } from './unless-aborted';

/** How the transaction of an attempt ended, whatever its handler made of that. */
export type AttemptEnding = { readonly kind: 'not_completed' } | HeldCompletion<unknown>;

/** A claim in the hands of an attempt, what it was made for, and its lease. */
export interface HeldByAttempt {
  readonly request: ClaimRequest;
  readonly lease: KeptLease;
}

/** What an attempt is made of. */
export interface AttemptOptions<Tx, Response> {
  readonly policy: MethodPolicy;
  readonly scope: string;
  readonly requestId: string | undefined;
  readonly metadata: Metadata;
  readonly deadline: Date | undefined;
  readonly store: IdempotencyStore<Tx>;
  /** Undefined for a call that runs unclaimed. */
  readonly held: HeldByAttempt | undefined;
  readonly serialize: (response: Response) => Buffer;
  readonly onEvent: ServerEventListener;
}

/** An attempt and what its runner needs to know of it. */
export interface RunningAttempt<Tx, Response> {
  readonly attempt: Attempt<Tx, Response>;
  /** What was published so far. */
  published(): PublishedFields;
  /** A step of this request is stored: its key is not given back, and the next attempt resumes. */
  isHalfFinished(): boolean;
  /** Records what the handler returned without completing. */
  completeDetached(response: Response | Rejection): Promise<void>;
  /** Waits for a completion that the handler did not await, then says how it ended. No other can begin. */
  ending(): Promise<AttemptEnding>;
}

/** Makes the attempt of one call. */
export function startAttempt<Tx extends object, Response>(
  options: AttemptOptions<Tx, Response>,
): RunningAttempt<Tx, Response> {
  const { policy, scope, requestId, metadata, deadline, store, held, onEvent } = options;
  const claim = held?.lease.claim();
  const journal = openJournal(claim?.results, claim?.attempt);
  const resumed = claim?.resource;
  let published: PublishedFields = resumed === undefined ? {} : { resource: resumed };
  /** Published inside a transaction: true only if it commits. Undefined outside of one. */
  let staged: PublishedFields | undefined;
  let isOver = false;
  let ending: AttemptEnding = { kind: 'not_completed' };
  const onEnding = (stepsEnding: StepsEnding): void => void (ending = stepsEnding);
  const steps = held && createSteps<Tx>({ policy, store, held, journal, deadline, onEvent, onEnding });
  let running: { readonly what: string; readonly ended: Promise<unknown>; readonly isOutside: boolean } | undefined;
  let publishing = Promise.resolve();

  /** One step at a time, and none once the attempt has ended. */
  const oneAtATime = <R>(what: string, work: () => Promise<R>, isOutside = false): Promise<R> => {
    const refusal = refusalOf(what, isOver, running?.what, ending);
    if (refusal !== undefined) return handled(Promise.reject(new CompletionFailedError(refusal)));
    const ended = work().finally(() => {
      staged = undefined;
      running = undefined;
    });
    running = { what, ended, isOutside };
    return handled(ended);
  };

  /** What is published inside counts if the transaction commits; it may be run more than once. */
  const staging =
    <R>(work: (tx: Tx) => Promise<R>) =>
    (tx: Tx): Promise<R> => {
      staged = {};
      return work(tx);
    };
  const keepStaged = (): void => {
    published = { ...published, ...staged };
  };

  const recordAnswer = async <R extends Response | Rejection>(
    work: (tx: Tx) => Promise<R>,
    { isolationLevel }: CompleteOptions,
  ): Promise<R> => {
    journal.assertTaken();
    // A resource that is stored while the transaction runs would defeat it above READ COMMITTED.
    await publishing;
    const completed: HeldCompletion<R> = await completeHeld<Tx, Response, R>({
      ...{ policy, store, held, isolationLevel, onEvent, serialize: options.serialize },
      work: staging(work),
      resource: () => ({ ...published, ...staged })['resource'],
    });
    ending = completed;
    switch (completed.kind) {
      case 'committed':
        keepStaged();
        return completed.result;
      case 'fenced':
        throw new CompletionFailedError('the claim was lost; everything was rolled back');
      case 'failed':
        throw completed.error;
      case 'never_committed':
        throw new CompletionFailedError('the commit did not happen', { cause: completed.error });
      case 'unknown':
        throw new CompletionFailedError('the outcome of the commit is unknown', { cause: completed.error });
    }
  };

  const complete = <R extends Response | Rejection>(
    work: (tx: Tx) => Promise<R>,
    completeOptions: CompleteOptions = {},
  ): Promise<R> => oneAtATime('complete', () => recordAnswer(work, completeOptions));

  const phase = <Value>(
    name: string,
    work: (tx: Tx) => Promise<Value>,
    phaseOptions: PhaseOptions<Value> = {},
  ): Promise<Value> =>
    oneAtATime(`phase ${name}`, async () => {
      if (steps === undefined) throw new TypeError(`phase ${name}: this call has no claim, so nothing can be resumed`);
      await publishing;
      const value = await steps.phase(name, staging(work), phaseOptions, () => staged?.['resource']);
      keepStaged();
      return value;
    });

  const effect: Attempt<Tx, Response>['effect'] = (name, work) =>
    oneAtATime(
      `effect ${name}`,
      async () => {
        if (steps === undefined) {
          throw new TypeError(`effect ${name}: this call has no claim, so it could be sent twice`);
        }
        await publishing;
        return steps.effect(name, work);
      },
      true,
    );

  const storeResource = async (resource: string): Promise<void> => {
    if (held === undefined || ending.kind !== 'not_completed') return;
    try {
      if (await store.publishIfHeld(held.lease.claim(), resource)) return;
      // Counted when the attempt ends, which can't but find it out too.
      held.lease.lose('somebody else has taken the claim');
    } catch (error) {
      onEvent({ type: 'fault', path: policy.path, what: 'a resource could not be published', error });
    }
  };

  const publish = (fields: PublishedFields): void => {
    if (staged !== undefined) {
      staged = { ...staged, ...fields };
      return;
    }
    const { resource } = fields;
    const isNew = resource !== undefined && resource !== published['resource'];
    published = { ...published, ...fields };
    if (isNew && !isOver) publishing = publishing.then(() => storeResource(resource));
  };

  let unclaimed: AbortController | undefined;
  return {
    attempt: {
      ...{ scope, requestId, metadata, deadline, complete, phase, effect, publish },
      derivedKey: (name) => {
        if (held === undefined) throw new TypeError(`derivedKey ${name}: this call has no key to derive from`);
        return derivedKeyOf({ scope, path: policy.path, key: held.request.key }, name);
      },
      get signal() {
        return held === undefined ? (unclaimed ??= new AbortController()).signal : held.lease.signal();
      },
    },
    published: () => published,
    isHalfFinished: () => journal.isStarted(),
    completeDetached: async (response) => {
      isOver = false;
      await complete(() => Promise.resolve(response)).catch((error: unknown) => {
        if (ending.kind === 'not_completed') ending = { kind: 'failed', error };
      });
      isOver = true;
    },
    ending: async () => {
      isOver = true;
      while (running !== undefined) {
        const { ended, isOutside } = running;
        const hasEnded = ended.then(
          () => true,
          () => true,
        );
        // The database ends what runs in it; what an effect does outside may never end, and counts no more without the claim.
        if (!isOutside || held === undefined) await hasEnded;
        else if ((await unlessAborted(hasEnded, held.lease.signal())) === undefined) return { kind: 'fenced' };
      }
      await publishing;
      return ending;
    },
  };
}

/** Why a step may not begin. */
function refusalOf(
  what: string,
  isOver: boolean,
  running: string | undefined,
  { kind }: AttemptEnding,
): string | undefined {
  if (isOver) return `${what}: the handler has returned; complete before it does`;
  if (running !== undefined) return `${what}: ${running} is already running; await it`;
  return kind === 'not_completed' || kind === 'failed'
    ? undefined
    : `${what}: this attempt has ended; complete it once`;
}

/** Where a handler does not wait for it, its ending says how it failed; an unhandled rejection would end the process. */
function handled<R>(promise: Promise<R>): Promise<R> {
  promise.catch(() => undefined);
  return promise;
}
