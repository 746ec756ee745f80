import type { CallLimits } from './call-limits';
import type { ClientOptions, ClientSettings, MethodSettings } from './client-options';

/** The longest wait that a Node timer and the gRPC deadline arithmetic of a Node server carry (2^31 − 1 ms, 24.8 days). */
const LONGEST_MS = 2_147_483_647;

const MILLISECONDS = `milliseconds, more than 0 and at most ${LONGEST_MS}`;

const METHOD_SETTINGS: ReadonlySet<string> = new Set<keyof CallLimits>([
  'timeoutMs',
  'attemptTimeoutMs',
  'maxAttempts',
]);

/** The names of the options of a client's retries. */
export const CLIENT_OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({
    policies: true,
    requestIdName: true,
    timeoutMs: true,
    attemptTimeoutMs: true,
    maxAttempts: true,
    methods: true,
    initialBackoffMs: true,
    backoffMultiplier: true,
    maxBackoffMs: true,
    random: true,
    waitForReady: true,
    keyLifetimeMs: true,
    retryBudget: true,
    onEvent: true,
  } satisfies Record<keyof ClientOptions, true>),
);

/** Whether a value is a time that a call can be given. */
export function isTimeoutMs(value: number): boolean {
  return Number.isFinite(value) && value > 0 && value <= LONGEST_MS;
}

/**
 * What is wrong with the options of a client, each with its name and what was expected.
 *
 * @param settings the options with the defaults filled in
 * @param limits those of methods that have none of their own
 * @param methods as they were given
 */
export function faultsOfOptions(
  settings: ClientSettings,
  limits: CallLimits,
  methods: Readonly<Record<string, MethodSettings>>,
): readonly string[] {
  const { initialBackoffMs, backoffMultiplier, maxBackoffMs, keyLifetimeMs, retryBudget } = settings;
  const faults: string[] = [];
  const expect = (isRight: boolean, option: keyof ClientOptions, expected: string, got?: number): void => {
    if (!isRight) faults.push(`${option}: expected ${expected}${got === undefined ? '' : `, got ${got}`}`);
  };
  expect(typeof settings.policies?.get === 'function', 'policies', 'a policy registry');
  expect(isMetadataName(settings.requestIdName), 'requestIdName', 'a lower-case metadata name without the suffix -bin');
  faults.push(...faultsOfLimits('', limits));
  expect(isTimeoutMs(initialBackoffMs), 'initialBackoffMs', MILLISECONDS, initialBackoffMs);
  const isMultiplier = Number.isFinite(backoffMultiplier) && backoffMultiplier >= 1;
  expect(isMultiplier, 'backoffMultiplier', 'a number from 1 on', backoffMultiplier);
  expect(isTimeoutMs(maxBackoffMs), 'maxBackoffMs', MILLISECONDS, maxBackoffMs);
  expect(!(maxBackoffMs < initialBackoffMs), 'maxBackoffMs', 'at least initialBackoffMs', maxBackoffMs);
  expect(typeof settings.random === 'function', 'random', 'a function');
  expect(typeof settings.waitForReady === 'boolean', 'waitForReady', 'true or false');
  const isLifetime = keyLifetimeMs === undefined || (Number.isFinite(keyLifetimeMs) && keyLifetimeMs > 0);
  expect(isLifetime, 'keyLifetimeMs', 'milliseconds, more than 0', keyLifetimeMs);
  const isBudget = typeof retryBudget?.spend === 'function' && typeof retryBudget.earn === 'function';
  expect(isBudget, 'retryBudget', 'what createRetryBudget makes');
  expect(typeof settings.onEvent === 'function', 'onEvent', 'a function');
  for (const [path, own] of Object.entries(methods)) faults.push(...faultsOfMethod(path, own, settings));
  return faults;
}

/** A method that the policies don't know would be one whose settings never count. */
function faultsOfMethod(path: string, own: MethodSettings, settings: ClientSettings): readonly string[] {
  const where = `methods[${path}]`;
  if (typeof own !== 'object' || own === null) return [`${where}: expected an object of settings`];
  const unknown = Object.keys(own).filter((name) => !METHOD_SETTINGS.has(name));
  return [
    ...(settings.policies?.get?.(path) === undefined
      ? [`${where}: expected the path of a method that the policies know, as /package.Service/Method`]
      : []),
    ...unknown.map((name) => `${where}.${name}: expected one of ${[...METHOD_SETTINGS].join(', ')}`),
    ...faultsOfLimits(`${where}.`, settings.limitsOf(path)),
  ];
}

function faultsOfLimits(where: string, { timeoutMs, attemptTimeoutMs, maxAttempts }: CallLimits): readonly string[] {
  const faults: string[] = [];
  const expect = (isRight: boolean, option: keyof CallLimits, expected: string, got: number): void => {
    if (!isRight) faults.push(`${where}${option}: expected ${expected}, got ${got}`);
  };
  expect(isTimeoutMs(timeoutMs), 'timeoutMs', MILLISECONDS, timeoutMs);
  expect(isTimeoutMs(attemptTimeoutMs), 'attemptTimeoutMs', MILLISECONDS, attemptTimeoutMs);
  expect(!(attemptTimeoutMs > timeoutMs), 'attemptTimeoutMs', `at most timeoutMs (${timeoutMs})`, attemptTimeoutMs);
  expect(Number.isInteger(maxAttempts) && maxAttempts >= 1, 'maxAttempts', 'a whole number from 1 on', maxAttempts);
  return faults;
}

/** Names that start with `grpc-` belong to gRPC itself (PROTOCOL-HTTP2, "Custom-Metadata"). */
function isMetadataName(name: string): boolean {
  return /^(?!grpc-)[0-9a-z_.-]+(?<!-bin)$/.test(name);
}
