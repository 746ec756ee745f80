import type { MethodPolicy } from '../idempotency/index';
import { resendSafety, type ResendSafety } from './resend-safety';

/** A method, or all of a service, as gRPC service config names them. */
export interface ConfigName {
  readonly service: string;
  readonly method?: string;
}

/** gRPC service config: what a stock client may do by itself. */
export interface ServiceConfig {
  readonly methodConfig: readonly {
    readonly name: readonly ConfigName[];
    /** None for a stream, which may be meant to last. */
    readonly timeout?: string;
    readonly retryPolicy?: RetryPolicy;
  }[];
  readonly retryThrottling: { readonly maxTokens: number; readonly tokenRatio: number };
}

interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialBackoff: string;
  readonly maxBackoff: string;
  readonly backoffMultiplier: number;
  readonly retryableStatusCodes: readonly string[];
}

/** The defaults of our own client (design 3.1), but for the attempts: stock clients make no more than five. */
const BACKOFF = { maxAttempts: 5, initialBackoff: '0.1s', maxBackoff: '5s', backoffMultiplier: 2 } as const;
const TIMEOUT = '30s';
const THROTTLING = { maxTokens: 10, tokenRatio: 0.1 } as const;

/**
 * What a stock client may do with the methods: it retries those that are safe by their level, and those whose key the
 * server enforces; these also on ABORTED, by which the server says that the first attempt still runs (and when to ask
 * again). It can't tell whether a call carries a key, so nothing else is retried. Every unary call gets a deadline.
 */
export function serviceConfigOf(policies: readonly MethodPolicy[]): ServiceConfig {
  const services = [...new Set(policies.map(({ service }) => service))];
  const named = (kind: ResendSafety['kind'], streams: boolean): readonly ConfigName[] =>
    policies
      .filter((policy) => resendSafety(policy).kind === kind && isStream(policy) === streams)
      .map(({ service, method }) => ({ service, method }));
  const safe = ['UNAVAILABLE'];
  const retried = [
    { name: named('by_level', false), timeout: { timeout: TIMEOUT }, retry: retryOn(safe) },
    { name: named('by_key', false), timeout: { timeout: TIMEOUT }, retry: retryOn([...safe, 'ABORTED']) },
    { name: named('by_level', true), timeout: {}, retry: retryOn(safe) },
    { name: named('unsafe', true), timeout: {}, retry: {} },
  ].filter(({ name }) => name.length > 0);
  return {
    methodConfig: [
      { name: services.map((service) => ({ service })), timeout: TIMEOUT },
      ...retried.map(({ name, timeout, retry }) => ({ name, ...timeout, ...retry })),
    ],
    retryThrottling: THROTTLING,
  };
}

function isStream({ clientStreaming, serverStreaming }: MethodPolicy): boolean {
  return clientStreaming || serverStreaming;
}

function retryOn(codes: readonly string[]): { readonly retryPolicy: RetryPolicy } {
  return { retryPolicy: { ...BACKOFF, retryableStatusCodes: codes } };
}
