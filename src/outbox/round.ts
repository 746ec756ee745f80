import { endsWithin } from '../ends-within';
import { type DeliveryOutcome, deliverAndMark } from './delivery';
import { releaseIfHeld, sweepEmpty, takeHeads, type TakenEvent } from './queue';
import type { RelaySettings } from './relay-options';
import { telling } from './telling';

/** What one round did, in events. */
export interface RelayRound extends Readonly<Record<DeliveryOutcome, number>> {
  /** How many it took, one per aggregate. */
  readonly taken: number;
}

/** The rounds of one relay, which share its places for deliveries. One is run at a time. */
export interface Rounds {
  /**
   * Takes a batch and delivers all of it.
   *
   * @throws what the database says when none could be taken
   */
  runWhole(): Promise<RelayRound>;
  /**
   * The same, but waits for deliveries no longer than it takes to begin them all, and a moment more: a consumer that
   * does not answer keeps the places of its own deliveries until their time is over, and no event of another waits for it.
   */
  run(): Promise<Pick<RelayRound, 'taken'>>;
  /** Resolves when no delivery is under way. */
  settled(): Promise<void>;
}

/** How long deliveries are waited for once all are begun, milliseconds: rounds of one event each would be many statements. */
const LINGER_AFTER_MS = 100;

/**
 * Makes the rounds of a relay; once `stopping` is aborted they take nothing and begin no delivery.
 *
 * @param onLateDelivery told where an event was delivered after its round: the next one of its aggregate is due
 */
export function createRounds(settings: RelaySettings, stopping: AbortSignal, onLateDelivery: () => void): Rounds {
  const { client, batchSize, leaseMs, deliveryTimeoutMs, parallel } = settings;
  /** Deliveries that outlived their round. */
  const lingering = new Set<Promise<void>>();
  let unswept = false;

  const begin = async () => {
    if (lingering.size >= parallel) await Promise.race(lingering);
    // Before the statement that begins the lease, so that ours never ends later than that of the database.
    const beginUntilMs = performance.now() + leaseMs - deliveryTimeoutMs;
    const events = stopping.aborted ? [] : await takeHeads(client, batchSize, leaseMs);
    const round = { isOver: false };
    const counts = { taken: events.length, delivered: 0, failed: 0, parked: 0, fenced: 0 };
    const waiting = [...events];
    const unsent: TakenEvent[] = [];
    let allBegun = (): void => undefined;
    const begun = new Promise<void>((resolve) => (allBegun = resolve));

    const deliver = async (event: TakenEvent): Promise<void> => {
      const outcome = await deliverAndMark(settings, event);
      counts[outcome] += 1;
      if (outcome !== 'delivered') return;
      unswept = true;
      if (round.isOver) onLateDelivery();
    };
    const deliverNext = async (): Promise<void> => {
      for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
        const taken = event;
        const isTooLate = stopping.aborted || performance.now() > beginUntilMs;
        if (isTooLate) unsent.push(taken);
        if (waiting.length === 0) allBegun();
        if (!isTooLate) await telling(settings, 'mark', () => deliver(taken));
      }
    };
    const places = Math.min(Math.max(0, parallel - lingering.size), events.length);
    // Another round, which was run at the same time, has them all.
    if (places === 0) unsent.push(...waiting.splice(0));
    const deliveries = Array.from({ length: places }, deliverNext);
    for (const delivery of deliveries) keepUntilDone(lingering, delivery);
    if (places === 0) allBegun();
    return { counts, deliveries, begun, unsent, round };
  };

  const end = async (unsent: readonly TakenEvent[]): Promise<void> => {
    await telling(settings, 'release', () => releaseIfHeld(client, unsent));
    if (!unswept) return;
    unswept = false;
    await telling(settings, 'sweep', () => sweepEmpty(client, 2 * batchSize));
  };

  return {
    runWhole: async () => {
      const { counts, deliveries, unsent } = await begin();
      await Promise.all(deliveries);
      await end(unsent);
      return counts;
    },
    run: async () => {
      const { counts, deliveries, begun, unsent, round } = await begin();
      await begun;
      await endsWithin(LINGER_AFTER_MS, Promise.all(deliveries));
      round.isOver = true;
      await end(unsent);
      return { taken: counts.taken };
    },
    settled: async () => void (await Promise.all(lingering)),
  };
}

function keepUntilDone(all: Set<Promise<void>>, work: Promise<void>): void {
  all.add(work);
  // What it rejects with is told to who waits for it; a place must not be lost by it.
  const done = () => all.delete(work);
  void work.then(done, done);
}
