import type { ClientEventListener } from '../events';
import type { PolicyRegistry } from '../policy';
import { quietListener } from '../quiet-listener';
import { REQUEST_ID } from '../wire/metadata';

/** The longest wait that a Node timer and the gRPC deadline arithmetic of a Node server carry (2^31 − 1 ms, 24.8 days). */
const LONGEST_MS = 2_147_483_647;

/** Time for a call with all its attempts where nothing else is said, milliseconds. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** How a client retries (design 5). Every option but `policies` has a default. */
export interface ClientOptions {
  /** What the levels and key rules of the methods are. A method it does not know counts as one of unknown level. */
  readonly policies: PolicyRegistry;
  /** Metadata name of the key. Default `request-id`. */
  readonly requestIdName?: string | undefined;
  /** Time for a call with all its attempts and waits. A call's own deadline counts where it is sooner. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** Time for one attempt of a call that may be retried, at most `timeoutMs`. Default 10,000, or `timeoutMs` if less. */
  readonly attemptTimeoutMs?: number | undefined;
  /** Attempts of one call, the first included. Default 6. */
  readonly maxAttempts?: number | undefined;
  /** Upper end of the wait before the second attempt. Default 100. */
  readonly initialBackoffMs?: number | undefined;
  /** What the upper end of the wait grows by from attempt to attempt, at least 1. Default 2. */
  readonly backoffMultiplier?: number | undefined;
  /** The longest wait that the client chooses by itself. Default 5,000. */
  readonly maxBackoffMs?: number | undefined;
  /** A number from 0 up to but without 1: the jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Told about every call and every retry. Default: nobody. */
  readonly onEvent?: ClientEventListener | undefined;
}

/** The options of a client with the defaults filled in. */
export type ClientSettings = { readonly [Name in keyof ClientOptions]-?: Exclude<ClientOptions[Name], undefined> };

/**
 * Fills in the defaults and checks every option.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function clientSettings(options: ClientOptions): ClientSettings {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const initialBackoffMs = options.initialBackoffMs ?? 100;
  const settings: ClientSettings = {
    policies: options.policies,
    requestIdName: options.requestIdName ?? REQUEST_ID,
    timeoutMs,
    attemptTimeoutMs: options.attemptTimeoutMs ?? Math.min(10_000, timeoutMs),
    maxAttempts: options.maxAttempts ?? 6,
    initialBackoffMs,
    backoffMultiplier: options.backoffMultiplier ?? 2,
    maxBackoffMs: options.maxBackoffMs ?? Math.max(5_000, initialBackoffMs),
    random: options.random ?? Math.random,
    onEvent:
      typeof options.onEvent === 'function' ? quietListener(options.onEvent) : (options.onEvent ?? (() => undefined)),
  };
  const faults = faultsOf(settings);
  if (faults.length > 0) throw new TypeError(`client options: ${faults.join('; ')}`);
  return settings;
}

/** Whether a value is a time that a call can be given. */
export function isTimeoutMs(value: number): boolean {
  return Number.isFinite(value) && value > 0 && value <= LONGEST_MS;
}

function faultsOf(settings: ClientSettings): string[] {
  const { timeoutMs, attemptTimeoutMs, maxAttempts, initialBackoffMs, backoffMultiplier, maxBackoffMs } = settings;
  const milliseconds = `milliseconds, more than 0 and at most ${LONGEST_MS}`;
  const faults: string[] = [];
  const expect = (isRight: boolean, option: keyof ClientOptions, expected: string, got?: number): void => {
    if (!isRight) faults.push(`${option}: expected ${expected}${got === undefined ? '' : `, got ${got}`}`);
  };
  expect(typeof settings.policies?.get === 'function', 'policies', 'a policy registry');
  expect(isMetadataName(settings.requestIdName), 'requestIdName', 'a lower-case metadata name without the suffix -bin');
  expect(isTimeoutMs(timeoutMs), 'timeoutMs', milliseconds, timeoutMs);
  expect(isTimeoutMs(attemptTimeoutMs), 'attemptTimeoutMs', milliseconds, attemptTimeoutMs);
  expect(!(attemptTimeoutMs > timeoutMs), 'attemptTimeoutMs', `at most timeoutMs (${timeoutMs})`, attemptTimeoutMs);
  expect(Number.isInteger(maxAttempts) && maxAttempts >= 1, 'maxAttempts', 'a whole number from 1 on', maxAttempts);
  expect(isTimeoutMs(initialBackoffMs), 'initialBackoffMs', milliseconds, initialBackoffMs);
  const isMultiplier = Number.isFinite(backoffMultiplier) && backoffMultiplier >= 1;
  expect(isMultiplier, 'backoffMultiplier', 'a number from 1 on', backoffMultiplier);
  expect(isTimeoutMs(maxBackoffMs), 'maxBackoffMs', milliseconds, maxBackoffMs);
  expect(!(maxBackoffMs < initialBackoffMs), 'maxBackoffMs', 'at least initialBackoffMs', maxBackoffMs);
  expect(typeof settings.random === 'function', 'random', 'a function');
  expect(typeof settings.onEvent === 'function', 'onEvent', 'a function');
  return faults;
}

/** Names that start with `grpc-` belong to gRPC itself (PROTOCOL-HTTP2, "Custom-Metadata"). */
function isMetadataName(name: string): boolean {
  return /^(?!grpc-)[0-9a-z_.-]+(?<!-bin)$/.test(name);
}
