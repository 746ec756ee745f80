import { type DeliveryOutcome, deliverAndMark } from './delivery';
import { releaseIfHeld, sweepEmpty, takeHeads, type TakenEvent } from './queue';
import type { RelayStep } from './relay-events';
import { createRelayLoop } from './relay-loop';
import { type RelayOptions, type RelaySettings, relaySettings } from './relay-options';
import { observeOutbox, purgeDelivered } from './upkeep';

/** What one round did, in events. */
export interface RelayRound extends Readonly<Record<DeliveryOutcome, number>> {
  /** How many it took, one per aggregate. */
  readonly taken: number;
}

/** Carries events from the outbox to their consumers. Any number of them may run, in any number of processes. */
export interface Relay {
  /**
   * Takes a batch of events that are due and delivers each once.
   *
   * @throws what the database says when none could be taken
   */
  runOnce(): Promise<RelayRound>;
  /** Deletes delivered events after their retention, and measures the outbox. Its faults are events. */
  upkeep(): Promise<void>;
  /** Runs round after round, and waits while there is nothing to do. Once only. */
  start(): void;
  /** Ends that: no further event is begun, those under way are finished. */
  stop(): Promise<void>;
  /** A hint that there may be something to do: look now, and soon again. */
  wake(): void;
}

/**
 * Makes a relay. Each round takes the oldest undelivered event of up to a batch of aggregates under a lease and a token,
 * delivers without a transaction open, and notes each outcome by that token. So at any time one relay has an aggregate,
 * and no event overtakes an earlier one of its aggregate; a relay that was paused past its lease changes nothing.
 *
 * @throws TypeError that names each option at fault
 */
export function createRelay(options: RelayOptions): Relay {
  const settings = relaySettings(options);
  const stopping = new AbortController();
  const runOnce = () => runRound(settings, stopping.signal);
  const upkeep = () => keepUp(settings);
  const loop = createRelayLoop(settings, { runOnce, upkeep, stopping });
  return { runOnce, upkeep, start: loop.start, stop: loop.stop, wake: loop.wake };
}

async function runRound(settings: RelaySettings, stopping: AbortSignal): Promise<RelayRound> {
  const { client, batchSize, leaseMs, deliveryTimeoutMs, parallel } = settings;
  // Before the statement that begins the lease, so that ours never ends later than that of the database.
  const beginUntilMs = performance.now() + leaseMs - deliveryTimeoutMs;
  const events = await takeHeads(client, batchSize, leaseMs);
  const counts = { delivered: 0, failed: 0, parked: 0, fenced: 0 };
  const waiting = [...events];
  const unsent: TakenEvent[] = [];
  const deliverNext = async (): Promise<void> => {
    for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
      const taken = event;
      if (stopping.aborted || performance.now() > beginUntilMs) unsent.push(taken);
      else await telling(settings, 'mark', async () => (counts[await deliverAndMark(settings, taken)] += 1));
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, events.length) }, deliverNext));
  await telling(settings, 'release', () => releaseIfHeld(client, unsent));
  if (counts.delivered > 0) await telling(settings, 'sweep', () => sweepEmpty(client, 2 * batchSize));
  return { taken: events.length, ...counts };
}

async function keepUp(settings: RelaySettings): Promise<void> {
  await telling(settings, 'purge', async () => {
    const events = await purgeDelivered(settings);
    if (events > 0) settings.onEvent({ type: 'purged', events });
  });
  await telling(settings, 'observe', async () => {
    settings.onEvent({ type: 'observed', observation: await observeOutbox(settings) });
  });
}

/** What fails for one event must not keep the others waiting: it is told, and the end of the lease repairs it. */
async function telling(settings: RelaySettings, step: RelayStep, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    settings.onEvent({ type: 'fault', step, error });
  }
}
