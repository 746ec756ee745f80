import type { ClientEventListener } from '../events';
import type { PolicyRegistry } from '../policy';
import { faultsOfNames, kindOf } from '../option-names';
import { quietListener } from '../quiet-listener';
import { REQUEST_ID } from '../wire/metadata';
import type { CallLimits } from './call-limits';
import { CLIENT_OPTIONS, faultsOfOptions } from './check-options';
import { createRetryBudget, type RetryBudget } from './retry-budget';

/** Time for a call with all its attempts where nothing else is said, milliseconds. */
export const DEFAULT_TIMEOUT_MS = 30_000;

const DEFAULT_ATTEMPT_TIMEOUT_MS = 10_000;

/** What a method can have of its own; what is left out is as for the whole client. */
export type MethodSettings = { readonly [Name in keyof CallLimits]?: CallLimits[Name] | undefined };

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
  /** Settings of single methods, by path: `/payments.v1.PaymentsService/CreatePayment`. Default: none. */
  readonly methods?: Readonly<Record<string, MethodSettings>> | undefined;
  /** Upper end of the wait before the second attempt. Default 100. */
  readonly initialBackoffMs?: number | undefined;
  /** What the upper end of the wait grows by from attempt to attempt, at least 1. Default 2. */
  readonly backoffMultiplier?: number | undefined;
  /** The longest wait that the client chooses by itself. Default 5,000. */
  readonly maxBackoffMs?: number | undefined;
  /** A number from 0 up to but without 1: the jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /**
   * Whether calls wait for a connection, within their time, instead of failing while there is none: so a restart of the
   * server uses up neither attempts nor budget (case J7). `waitForReady` of a call's own metadata counts before it.
   * Default true.
   */
  readonly waitForReady?: boolean | undefined;
  /**
   * For how long the server keeps a key, where that is less than the method's policy says: from the date of a dated key,
   * from the start of the call for another. No retry is sent after it. Default: `max_key_age` or `retention` of the
   * policy.
   */
  readonly keyLifetimeMs?: number | undefined;
  /**
   * How much is retried altogether: give all clients of a target the same. Default: one of 10 tokens, +0.1 per success,
   * for this interceptor; typed clients share one per address.
   */
  readonly retryBudget?: RetryBudget | undefined;
  /** Told about every call and every retry. Default: nobody. */
  readonly onEvent?: ClientEventListener | undefined;
}

type Required<Name extends keyof ClientOptions> = { readonly [N in Name]-?: Exclude<ClientOptions[N], undefined> };

/** The options of a client with the defaults filled in. */
export interface ClientSettings extends Required<
  Exclude<keyof ClientOptions, keyof CallLimits | 'methods' | 'keyLifetimeMs'>
> {
  readonly keyLifetimeMs: number | undefined;
  /** The limits of a method, by path. */
  limitsOf(path: string): CallLimits;
}

/**
 * Checks every option and fills in the defaults.
 *
 * @param known the names of options that there are, those included that somebody else reads
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function clientSettings(options: ClientOptions, known = CLIENT_OPTIONS): ClientSettings {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`client options: expected { policies }, got ${kindOf(options)}`);
  }
  const { onEvent, initialBackoffMs = 100, maxBackoffMs = Math.max(5_000, initialBackoffMs) } = options;
  const limits = fillIn(options, {
    timeoutMs: DEFAULT_TIMEOUT_MS,
    attemptTimeoutMs: DEFAULT_ATTEMPT_TIMEOUT_MS,
    maxAttempts: 6,
  });
  const methods = new Map(
    Object.entries(options.methods ?? {}).map(([path, own]) => [path, fillIn(own ?? {}, limits)] as const),
  );
  const settings: ClientSettings = {
    policies: options.policies,
    requestIdName: options.requestIdName ?? REQUEST_ID,
    initialBackoffMs,
    backoffMultiplier: options.backoffMultiplier ?? 2,
    maxBackoffMs,
    random: options.random ?? Math.random,
    waitForReady: options.waitForReady ?? true,
    keyLifetimeMs: options.keyLifetimeMs,
    retryBudget: options.retryBudget ?? createRetryBudget(),
    onEvent: typeof onEvent === 'function' ? quietListener(onEvent) : (onEvent ?? (() => undefined)),
    limitsOf: (path) => methods.get(path) ?? limits,
  };
  const faults = [...faultsOfNames(options, known), ...faultsOfOptions(settings, limits, options.methods ?? {})];
  if (faults.length > 0) throw new TypeError(`client options: ${faults.join('; ')}`);
  return settings;
}

/** An attempt timeout that nobody gave follows a call timeout that is shorter. */
function fillIn(given: MethodSettings, byDefault: CallLimits): CallLimits {
  const timeoutMs = given.timeoutMs ?? byDefault.timeoutMs;
  return {
    timeoutMs,
    attemptTimeoutMs: given.attemptTimeoutMs ?? Math.min(byDefault.attemptTimeoutMs, timeoutMs),
    maxAttempts: given.maxAttempts ?? byDefault.maxAttempts,
  };
}
