import type { ServerEvent } from '../../src/idempotency/events';
import type { KeptLease } from '../../src/idempotency/server/kept-lease';
import { createLeaseKeeper, type LeaseKeeper } from '../../src/idempotency/server/lease-keeper';
import type { HeldClaim, Renewal, RenewalResult } from '../../src/idempotency/store/store';
import { policyOf } from './claim-requests';

export const LEASE_MS = 3_000;
export const POLICY = policyOf('CreatePayment', { leaseMs: LEASE_MS, maxExecutionMs: 10 * LEASE_MS });

/** What a store answers to a renewal. */
export type RenewalAnswer = (renewals: readonly Renewal[]) => Promise<readonly RenewalResult[]>;

/** Everything is renewed, at once. */
export const renewAll: RenewalAnswer = async (renewals) => renewals.map(() => 'renewed' as const);

/** A keeper under fake timers, whose store a test answers for. */
export interface TestedKeeper {
  readonly keeper: LeaseKeeper;
  /** The renewal statements so far: when, in milliseconds since the start, and for which tokens. */
  readonly statements: { readonly atMs: number; readonly tokens: readonly string[] }[];
  /** The tokens that were taken away, by statement. */
  readonly ended: (readonly string[])[];
  readonly events: ServerEvent[];
  /** How the store answers from now on. Default: `renewAll`. */
  answer: RenewalAnswer;
  endLeases: () => Promise<number>;
  /** Results of renewals, in the order in which they were told. */
  results(): readonly string[];
  /** Keeps a lease from now on, by its token. */
  keep(token: string, change?: Partial<typeof POLICY>): KeptLease;
}

/** Makes a keeper without leases. Call it under fake timers. */
export function testedKeeper(): TestedKeeper {
  const startedAtMs = performance.now();
  const [statements, ended, events]: [TestedKeeper['statements'], TestedKeeper['ended'], ServerEvent[]] = [[], [], []];
  const keeper = createLeaseKeeper({
    store: {
      renewIfHeld: (renewals) => {
        const tokens = renewals.map(({ claim }) => claim.ownerToken);
        statements.push({ atMs: Math.round(performance.now() - startedAtMs), tokens });
        return tested.answer(renewals);
      },
      endLeasesIfHeld: (claims) => {
        ended.push(claims.map(({ ownerToken }) => ownerToken));
        return tested.endLeases();
      },
    },
    onEvent: (event) => void events.push(event),
  });
  const tested: TestedKeeper = {
    ...{ keeper, statements, ended, events, answer: renewAll, endLeases: async () => 0 },
    results: () => events.flatMap((event) => (event.type === 'renewal' ? [event.result] : [])),
    keep: (token, change = {}) => keeper.keep(heldClaim(token), { ...POLICY, ...change }, performance.now()),
  };
  return tested;
}

/** A claim that is held by this token. */
export function heldClaim(ownerToken: string): HeldClaim {
  return { bucket: '1970-01-01', id: ownerToken, ownerToken, attempt: 1, expiresAt: new Date(0) };
}

/** An answer of the store that a test lets through. */
export function heldAnswer(result: RenewalResult): { readonly answer: RenewalAnswer; letThrough(): void } {
  let letThrough = (): void => undefined;
  return {
    answer: (renewals) => new Promise((resolve) => (letThrough = () => resolve(renewals.map(() => result)))),
    letThrough: () => letThrough(),
  };
}
