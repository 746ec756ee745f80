import { ClaimLostError } from '../errors';
import type { MethodPolicy } from '../policy';
import type { HeldClaim, RenewalResult } from '../store/store';

/** What became of one try to prolong a lease; `failed` when the store could not be reached. */
export type LeaseRenewalResult = RenewalResult | 'failed';

/** The lease of one attempt, as far as this process can know it: the database alone knows whose a key is. */
export interface KeptLease {
  readonly path: string;
  /** The key that is held, for the log. */
  readonly requestId: string | undefined;
  readonly leaseMs: number;
  /** The claim, with the token that holds it now. */
  claim(): HeldClaim;
  /** Fires when the claim is known to be lost, or renewals have ended and so has the lease. */
  signal(): AbortSignal;
  /** How much of the lease is left at least, milliseconds; not above zero when it may be over. */
  leftMs(): number;
  /**
   * Renews no more until `resume`: a renewal during a completion would defeat the attempt's own transaction above READ
   * COMMITTED. Resolves when none is under way.
   */
  pause(): Promise<void>;
  resume(): void;
  /** Prolongs it now, where it still may be. False when the claim is lost. */
  prolong(): Promise<boolean>;
  /** The key is now held under another token. */
  replace(claim: HeldClaim): void;
  /** The claim is lost. */
  lose(why: string): void;
  /** The attempt is over. */
  end(): void;

  /** When a renewal or the end of renewals is due, by `performance.now()`; Infinity when nothing is. For the keeper. */
  dueAtMs(): number;
  /** From when on it may be renewed together with others that are due; Infinity when it may not. For the keeper. */
  renewableAtMs(): number;
  /** Whether the attempt has run for as long as it may. For the keeper. */
  isOverLimit(nowMs: number): boolean;
  /** No renewal any more; the signal fires when the lease is over. True the first time. For the keeper. */
  endRenewals(nowMs: number): boolean;
  /** What became of a renewal that was asked for at `askedAtMs`. For the keeper. */
  renewed(result: LeaseRenewalResult, askedAtMs: number): void;
}

/** What a lease is kept with. */
export interface KeptLeaseOptions {
  readonly claim: HeldClaim;
  readonly policy: MethodPolicy;
  readonly heldSinceMs: number;
  /** For the log. */
  readonly requestId?: string | undefined;
  /** Resolves when no renewal is under way. */
  readonly underWay: () => Promise<void>;
  /** Renews this lease and tells it the result through `renewed`. */
  readonly prolong: () => Promise<void>;
  readonly resumed: () => void;
  /** @param overLimit whether it has run for longer than it may, and nobody has noticed */
  readonly ended: (overLimit: boolean) => void;
}

/** A lease is renewed when a third of it is over, so that two renewals may fail. */
const RENEWALS_PER_LEASE = 3;
/** After a renewal that did not get through, the next is tried after this part of the lease. */
const RETRIES_PER_LEASE = 12;
/** A lease goes along with others this part of it before it is due; from then on they are due together. */
const EARLY_PARTS = 24;

/** Keeps account of one lease. */
export function createKeptLease(options: KeptLeaseOptions): KeptLease {
  const { policy } = options;
  const { leaseMs } = policy;
  const limitAtMs = options.heldSinceMs + policy.maxExecutionMs;
  let claim = options.claim;
  let heldSinceMs = options.heldSinceMs;
  let renewAtMs = heldSinceMs + leaseMs / RENEWALS_PER_LEASE;
  let state: 'renewing' | 'limit' | 'ended' | 'lost' = 'renewing';
  let paused = false;
  let controller: AbortController | undefined;
  let lostBecause: string | undefined;

  const isOverLimit = (nowMs: number): boolean => nowMs >= limitAtMs;
  const abort = (): void => {
    if (lostBecause !== undefined) controller?.abort(new ClaimLostError(lostBecause));
  };
  const lose = (why: string): void => {
    state = 'lost';
    lostBecause ??= why;
    abort();
  };

  return {
    path: policy.path,
    requestId: options.requestId,
    leaseMs,
    claim: () => claim,
    signal: () => {
      if (controller === undefined) {
        controller = new AbortController();
        abort();
      }
      return controller.signal;
    },
    leftMs: () => heldSinceMs + leaseMs - performance.now(),
    pause: async () => {
      paused = true;
      await options.underWay();
    },
    resume: () => {
      paused = false;
      options.resumed();
    },
    prolong: async () => {
      // A claim that was given up is not to be held for another lease, nor one to be prolonged past its limit.
      if (state === 'renewing' && !isOverLimit(performance.now())) await options.prolong();
      return lostBecause === undefined;
    },
    replace: (other) => {
      claim = other;
    },
    lose,
    end: () => {
      // While a transaction runs nobody looks.
      const overLimit = state === 'renewing' && isOverLimit(performance.now());
      if (state !== 'lost') state = 'ended';
      options.ended(overLimit);
    },

    dueAtMs: () => {
      if (paused) return Infinity;
      if (state === 'limit') return heldSinceMs + leaseMs;
      return state === 'renewing' ? Math.min(renewAtMs, limitAtMs) : Infinity;
    },
    renewableAtMs: () => (state === 'renewing' && !paused ? renewAtMs - leaseMs / EARLY_PARTS : Infinity),
    isOverLimit,
    endRenewals: (nowMs) => {
      const first = state !== 'limit';
      if (nowMs >= heldSinceMs + leaseMs) lose('the attempt ran longer than max_execution, and its lease is over');
      else state = 'limit';
      return first;
    },
    renewed: (result, askedAtMs) => {
      switch (result) {
        case 'renewed':
          heldSinceMs = askedAtMs;
          renewAtMs = askedAtMs + leaseMs / RENEWALS_PER_LEASE;
          return;
        case 'lost':
          return lose('somebody else has taken the claim');
        case 'busy':
        case 'failed':
          renewAtMs = performance.now() + leaseMs / RETRIES_PER_LEASE;
      }
    },
  };
}
