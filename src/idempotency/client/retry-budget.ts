import { assertObject, faultsOfNames } from '../option-names';

/** How much a target may be retried: options of {@link createRetryBudget}. */
export interface RetryBudgetOptions {
  /** Names the target in events and metrics: configuration, never something of a call. Default `default`. */
  readonly target?: string | undefined;
  /** What the budget holds at the start and at most, from 1 on. Default 10. */
  readonly maxTokens?: number | undefined;
  /** What a call that ends OK adds, from 0 on. Default 0.1. */
  readonly tokensPerSuccess?: number | undefined;
}

/**
 * What keeps retries from multiplying the load of a server in trouble. All calls to one target share one.
 *
 * A retry costs a token and is refused while less than one is left; a call that ends OK adds a part of one. So in any
 * stretch of time there are at most `maxTokens + tokensPerSuccess × successes` attempts beyond the first of each call.
 * gRFC A6 instead charges every failure and refuses at half of the tokens; charging what is to be bounded makes the
 * bound exact, and leaves calls that may not be retried out of it.
 */
export interface RetryBudget {
  readonly target: string;
  /** What is left. */
  readonly tokens: number;
  /** Takes a token for a retry. False, and nothing is taken, where less than one is left. */
  spend(): boolean;
  /** Adds what a success is worth. False where nothing was added, since the budget is full. */
  earn(): boolean;
}

const OPTION_NAMES: readonly (keyof RetryBudgetOptions)[] = ['target', 'maxTokens', 'tokensPerSuccess'];

/** Tokens are counted in thousandths: ten tenths must be one. */
const PARTS = 1_000;

/**
 * Makes a budget, for one target, to be given to all clients of that target.
 *
 * @throws TypeError that names each option at fault
 */
export function createRetryBudget(options: RetryBudgetOptions = {}): RetryBudget {
  assertObject('retry budget', `{ ${OPTION_NAMES.join(', ')} }`, options);
  const { target = 'default', maxTokens = 10, tokensPerSuccess = 0.1 } = options;
  const faults = [
    ...faultsOfNames(options, new Set(OPTION_NAMES)),
    ...(typeof target === 'string' ? [] : ['target: expected a text']),
    ...(isNumberFrom(1, maxTokens) ? [] : [`maxTokens: expected a number from 1 on, got ${maxTokens}`]),
    ...(isNumberFrom(0, tokensPerSuccess)
      ? []
      : [`tokensPerSuccess: expected a number from 0 on, got ${tokensPerSuccess}`]),
  ];
  if (faults.length > 0) throw new TypeError(`retry budget: ${faults.join('; ')}`);
  const most = Math.round(maxTokens * PARTS);
  const perSuccess = Math.round(tokensPerSuccess * PARTS);
  let left = most;
  return {
    target,
    get tokens() {
      return left / PARTS;
    },
    spend: () => {
      if (left < PARTS) return false;
      left -= PARTS;
      return true;
    },
    earn: () => {
      const before = left;
      left = Math.min(most, left + perSuccess);
      return left !== before;
    },
  };
}

const budgets = new Map<string, RetryBudget>();

/** The budget that all clients of a target in this process share where they are given no other. */
export function sharedRetryBudget(target: string): RetryBudget {
  const budget = budgets.get(target) ?? createRetryBudget({ target });
  budgets.set(target, budget);
  return budget;
}

function isNumberFrom(least: number, value: number): boolean {
  return Number.isFinite(value) && value >= least;
}
