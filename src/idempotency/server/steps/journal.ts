import { isStableName, STABLE_NAME_EXPECTED } from '../../stable-name';
import { readSteps, startedBy, type StoredStep, writeSteps } from '../../stored-steps';
import { decodeValue, encodeValue } from './stored-value';

/** What an attempt has done so far, in order; what is stored of it is what the next attempt starts from. */
export type Step = StoredStep;

/** The handler does not take the steps that are stored for its key, or takes them in a way that can't be resumed. */
export class StepOrderError extends Error {
  override readonly name = 'StepOrderError';
}

/** The most bytes that the results of one request may take. */
export const MOST_RESULT_BYTES = 256 * 1024;

/**
 * The steps of one request: those that are stored, then those that this attempt adds. It checks that an attempt goes
 * the way that was gone before: a resumed request whose handler has changed must stop, not pay somebody else's charge.
 */
export interface Journal {
  /** Whether anything is stored: from then on the key is not given back. */
  isStarted(): boolean;
  /**
   * Takes the next step.
   *
   * @returns its stored result; undefined where it is to be done, or, for an effect that has begun, done again
   * @throws StepOrderError when another step is stored in this place, or the name was used or can't be
   */
  next(
    kind: Step['kind'],
    name: string,
  ): { readonly stored: { readonly value: unknown } | undefined; readonly begun: boolean };
  /**
   * What is to be stored with a step's begin or result. Nothing of it counts before `stored`.
   *
   * @param begins name of the effect that is stored as begun with it
   * @throws StepOrderError when that can't be the name of the next step
   */
  with(step: Step, begins?: string): Draft;
  /** What is to be stored beside a completion: nothing is lost that was not stored yet. */
  stored(draft: Draft): void;
  /** @throws StepOrderError when a stored step was not taken: it may be known to somebody outside */
  assertTaken(): void;
  /** Notes the result of an effect; it is stored with the next commit. */
  note(name: string, result: string): void;
}

/** A journal as it is to be stored. */
export interface Draft {
  readonly steps: readonly Step[];
  /** Different for every step and its begin: by it a commit whose answer was lost is recognised. */
  readonly recoveryPoint: string;
  /** The recovery point that is stored now. */
  readonly after: string | undefined;
  readonly results: Buffer;
}

/**
 * @param stored what an earlier attempt stored; undefined for none
 * @param attempt which attempt this is. Default 1
 */
export function openJournal(stored: Uint8Array | undefined, attempt = 1): Journal {
  let steps: readonly Step[] = stored === undefined ? [] : readSteps(stored);
  const firstBy = steps.length > 0 ? startedBy(stored) : attempt;
  let isStored = steps.length > 0;
  let point = pointOf(steps);
  let taken = 0;
  const used = new Set<string>();

  return {
    isStarted: () => isStored,
    next: (kind, name) => {
      checkName(kind, name, used);
      const step = steps[taken];
      if (step !== undefined && (step.name !== name || step.kind !== kind)) {
        throw new StepOrderError(
          `${kind} ${name}: what is stored for this key has ${step.kind} ${step.name} in its place; ` +
            'let the handler take the stored steps in their order, or have this request settled by a person',
        );
      }
      used.add(name);
      taken += 1;
      return {
        stored: step?.result === undefined ? undefined : { value: decodeValue(step.result) },
        begun: step !== undefined,
      };
    },
    with: (step, begins) => {
      if (begins !== undefined) checkName('effect', begins, used);
      const next: readonly Step[] = begins === undefined ? [] : [{ kind: 'effect', name: begins, result: undefined }];
      return draftOf([...steps.filter(({ name }) => name !== step.name), step, ...next], point, firstBy);
    },
    stored: (draft) => {
      steps = draft.steps;
      point = draft.recoveryPoint;
      isStored = true;
    },
    assertTaken: () => {
      const left = steps.find(({ name }) => !used.has(name));
      if (left === undefined) return;
      throw new StepOrderError(
        `complete: what is stored for this key has ${left.kind} ${left.name}, which this attempt did not take; ` +
          'let the handler take the stored steps in their order, or have this request settled by a person',
      );
    },
    note: (name, result) => {
      steps = steps.map((step) => (step.name === name ? { ...step, result } : step));
    },
  };
}

/** Names are part of what is stored, and of derived keys: they may never change. */
function checkName(kind: Step['kind'], name: string, used: ReadonlySet<string>): void {
  if (!isStableName(name)) {
    throw new StepOrderError(`${kind} ${JSON.stringify(name)}: expected ${STABLE_NAME_EXPECTED}`);
  }
  if (used.has(name)) throw new StepOrderError(`${kind} ${name}: this attempt has used the name already`);
}

/**
 * Encodes the result of a step.
 *
 * @throws UnstorableValueError when it would not be read as what it is
 */
export function encodeResult(name: string, value: unknown): string {
  return encodeValue(value, name);
}

function pointOf(steps: readonly Step[]): string | undefined {
  const last = steps.at(-1);
  if (last === undefined) return undefined;
  return `${last.name}${last.kind === 'effect' && last.result === undefined ? '#begun' : ''}`;
}

function draftOf(steps: readonly Step[], after: string | undefined, firstBy: number): Draft {
  const last = steps.at(-1);
  if (last === undefined) throw new Error('a draft without steps');
  const results = writeSteps(steps, firstBy);
  if (results.length > MOST_RESULT_BYTES) {
    throw new RangeError(
      `${last.kind} ${last.name}: the results of this request take ${results.length} bytes, more than ${MOST_RESULT_BYTES}; ` +
        'store what is large in a table of yours and return its key',
    );
  }
  return { steps, recoveryPoint: pointOf(steps) ?? last.name, after, results };
}
