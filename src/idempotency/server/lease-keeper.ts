import type { ServerEvent, ServerEventListener } from '../events';
import { LONGEST_TIMER_MS } from '../longest-timer';
import type { MethodPolicy } from '../policy';
import type { HeldClaim, IdempotencyStore, RenewalResult } from '../store/store';
import { createKeptLease, type KeptLease } from './kept-lease';
import { within } from './within';

/** Keeps the leases of all attempts of this process alive, with one timer and one statement at a time (design 4.7). */
export interface LeaseKeeper {
  /**
   * Keeps a lease until it is told to stop.
   *
   * @param heldSinceMs when the claim was asked for, by `performance.now()`: the lease can't have begun earlier
   * @param requestId the key that is held, for the log
   */
  keep(claim: HeldClaim, policy: MethodPolicy, heldSinceMs: number, requestId?: string): KeptLease;
  /** Runs a claim and counts it meanwhile: it may become a lease. */
  claiming<Result>(claim: () => Promise<Result>): Promise<Result>;
  /** How many leases are kept, the claims that are under way included. */
  count(): number;
  /**
   * Ends all leases at once, tokens and all, so that nobody waits for a process that left politely. Rejects when the
   * store can't be reached within two seconds.
   */
  endAll(): Promise<void>;
}

/** Most leases of one statement. */
const LARGEST_BATCH = 500;
/** A renewal that gives no answer is given up after this part of the shortest lease in it, so that another can follow. */
const ANSWERS_PER_LEASE = 4;
/** How long a process that ends waits for the store, milliseconds. */
const END_WITHIN_MS = 2_000;

/** What a keeper works with. */
export interface LeaseKeeperOptions<Tx> {
  readonly store: Pick<IdempotencyStore<Tx>, 'renewIfHeld' | 'endLeasesIfHeld'>;
  readonly onEvent: ServerEventListener;
}

/** Starts with no lease. The timer does not keep the process alive. */
export function createLeaseKeeper<Tx>({ store, onEvent }: LeaseKeeperOptions<Tx>): LeaseKeeper {
  const leases = new Set<KeptLease>();
  let timer: { readonly atMs: number; readonly handle: NodeJS.Timeout } | undefined;
  let round = Promise.resolve();
  let claims = 0;
  /** The statement in which a lease is being renewed. */
  const renewing = new Map<KeptLease, Promise<void>>();

  /** Renews these, and tells each what became of it. Never rejects. */
  const renew = (batch: readonly KeptLease[]): Promise<void> => {
    const renewal = renewAndTell(batch);
    for (const lease of batch) renewing.set(lease, renewal);
    return renewal;
  };

  const renewAndTell = async (batch: readonly KeptLease[]): Promise<void> => {
    const askedAtMs = performance.now();
    const results = await renewalsOf(batch);
    batch.forEach((lease, index) => {
      renewing.delete(lease);
      // Completed or released meanwhile: then it is no loss that the record is no longer claimed.
      if (!leases.has(lease)) return;
      const result = results[index] ?? 'failed';
      lease.renewed(result, askedAtMs);
      onEvent({ type: 'renewal', path: lease.path, result });
    });
  };

  const renewalsOf = async (batch: readonly KeptLease[]): Promise<readonly RenewalResult[]> => {
    const answerWithinMs = Math.min(...batch.map(({ leaseMs }) => leaseMs)) / ANSWERS_PER_LEASE;
    try {
      const renewals = batch.map(({ claim, leaseMs }) => ({ claim: claim(), leaseMs }));
      return await within(answerWithinMs, store.renewIfHeld(renewals));
    } catch (error) {
      const [first] = batch;
      if (first !== undefined) {
        onEvent({ type: 'fault', path: first.path, what: `${batch.length} leases could not be renewed`, error });
      }
      return [];
    }
  };

  const renewDue = async (): Promise<void> => {
    const nowMs = performance.now();
    for (const lease of leases) {
      if (lease.dueAtMs() > nowMs || !lease.isOverLimit(nowMs)) continue;
      if (lease.endRenewals(nowMs)) onEvent(limitOf(lease));
    }
    const renewed = new Set<KeptLease>();
    for (;;) {
      // Looked for anew before each statement: some end or begin to complete while the one before is out.
      const renewable = [...leases].filter((lease) => lease.renewableAtMs() <= nowMs && !renewed.has(lease));
      const batch = renewable.slice(0, LARGEST_BATCH);
      if (batch.length === 0) return;
      await renew(batch);
      for (const lease of batch) renewed.add(lease);
    }
  };

  const schedule = (): void => {
    const nextAtMs = Math.min(...[...leases].map((lease) => lease.dueAtMs()));
    if (!Number.isFinite(nextAtMs)) return;
    if (timer !== undefined && timer.atMs <= nextAtMs) return;
    clearTimeout(timer?.handle);
    const handle = setTimeout(
      () => {
        timer = undefined;
        round = round.then(renewDue).then(schedule);
      },
      Math.min(nextAtMs - performance.now(), LONGEST_TIMER_MS),
    ).unref();
    timer = { atMs: nextAtMs, handle };
  };

  const end = async (ending: readonly KeptLease[]): Promise<void> => {
    // A renewal under way has the rows in hand, and what somebody has in hand is not ended.
    await Promise.all(ending.flatMap((lease) => renewing.get(lease) ?? []));
    await store.endLeasesIfHeld(ending.map((lease) => lease.claim()));
    for (const lease of ending) {
      lease.lose('the process ends');
      onEvent({ type: 'lease_ended', path: lease.path, requestId: lease.requestId });
    }
  };

  return {
    keep: (claim, policy, heldSinceMs, requestId) => {
      const lease: KeptLease = createKeptLease({
        ...{ claim, policy, heldSinceMs, requestId },
        underWay: () => renewing.get(lease) ?? Promise.resolve(),
        prolong: () => renew([lease]),
        resumed: schedule,
        ended: (overLimit) => {
          leases.delete(lease);
          if (overLimit) onEvent(limitOf(lease));
        },
      });
      leases.add(lease);
      // All others were scheduled before; to look at each of them for every call would cost every call.
      if (timer === undefined || lease.dueAtMs() < timer.atMs) schedule();
      return lease;
    },
    claiming: async (claim) => {
      claims += 1;
      try {
        return await claim();
      } finally {
        claims -= 1;
      }
    },
    count: () => leases.size + claims,
    endAll: async () => {
      clearTimeout(timer?.handle);
      timer = undefined;
      const ending = [...leases];
      leases.clear();
      if (ending.length > 0) await within(END_WITHIN_MS, end(ending));
    },
  };
}

function limitOf({ path, requestId }: KeptLease): ServerEvent {
  return { type: 'execution_limit', path, requestId };
}
