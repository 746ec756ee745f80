import type { RelayStep } from './relay-events';
import type { RelaySettings } from './relay-options';

/** What fails for one event must not keep the others waiting: it is told, and the end of the lease repairs it. */
export async function telling(
  { onEvent }: Pick<RelaySettings, 'onEvent'>,
  step: RelayStep,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    onEvent({ type: 'fault', step, error });
  }
}
