import { createRelayLoop } from './relay-loop';
import { type RelayOptions, type RelaySettings, relaySettings } from './relay-options';
import { createRounds, type RelayRound } from './round';
import { telling } from './telling';
import { observeOutbox, purgeDelivered } from './upkeep';

export type { RelayRound } from './round';

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
  const rounds = createRounds(settings, stopping.signal, () => loop.wake());
  const upkeep = () => keepUp(settings);
  const loop: Pick<Relay, 'start' | 'stop' | 'wake'> = createRelayLoop(settings, { rounds, upkeep, stopping });
  return { runOnce: rounds.runWhole, upkeep, start: loop.start, stop: loop.stop, wake: loop.wake };
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
