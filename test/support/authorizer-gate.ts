import { type Authorizer, createStandInAuthorizer } from '../../src/payments/authorizer';

/** An authorizer that answers each request when a test says so. */
export interface AuthorizerGate {
  readonly authorizer: Authorizer;
  /** Resolves when it has been asked for the n-th time, from 1. */
  asked(time: number): Promise<void>;
  /** How often it has been asked so far. */
  timesAsked(): number;
  /** Lets the n-th request be answered, from 1, now or when it comes. */
  answer(time: number): void;
  /** Lets the n-th request, from 1, fail with an error. */
  fail(time: number): void;
}

/** A step that one side takes and the other waits for. */
interface Step {
  readonly taken: Promise<void>;
  take(): void;
  refuse(): void;
}

/** Makes a gate. What is asked stays unanswered until `answer`. */
export function createAuthorizerGate(): AuthorizerGate {
  const standIn = createStandInAuthorizer();
  const asked = steps();
  const answered = steps();
  let times = 0;
  return {
    authorizer: {
      ...standIn,
      authorize: async (request, call) => {
        times += 1;
        const time = times;
        asked(time).take();
        await answered(time).taken;
        return standIn.authorize(request, call);
      },
    },
    asked: (time) => asked(time).taken,
    timesAsked: () => times,
    answer: (time) => answered(time).take(),
    fail: (time) => answered(time).refuse(),
  };
}

function steps(): (time: number) => Step {
  const known = new Map<number, Step>();
  return (time) => {
    const step = known.get(time) ?? makeStep();
    known.set(time, step);
    return step;
  };
}

function makeStep(): Step {
  let take = (): void => undefined;
  let refuse = (): void => undefined;
  const taken = new Promise<void>((resolve, reject) => {
    take = resolve;
    refuse = () => reject(new Error('the authorizer failed'));
  });
  // Nobody may be waiting yet.
  taken.catch(() => undefined);
  return { taken, take, refuse };
}
