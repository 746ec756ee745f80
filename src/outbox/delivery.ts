import { endsWithin } from '../ends-within';
import { markDeliveredIfHeld, parkIfHeld, postponeIfHeld, type TakenEvent } from './queue';
import type { ParkReason } from './relay-events';
import { giveUpAfterMsOf, maxAttemptsOf, type RelaySettings } from './relay-options';

/** How one event fared. `fenced`: it is with another relay now. */
export type DeliveryOutcome = 'delivered' | 'failed' | 'parked' | 'fenced';

const MAX_ERROR_LENGTH = 500;

/**
 * Delivers an event and notes how that went: after it was confirmed, never before. Whoever dies in between leaves it to
 * be delivered once more.
 *
 * @throws what the database says when the outcome can't be noted; then the lease of the event ends
 */
export async function deliverAndMark(settings: RelaySettings, event: TakenEvent): Promise<DeliveryOutcome> {
  const { client } = settings;
  if (event.takenAtMs - madeAtMs(event.id) > giveUpAfterMsOf(settings, event.type)) {
    const error = new Error('too old: its consumer would refuse it as expired, or may have forgotten it');
    return park(settings, event, 'too_old', false, error);
  }
  const attempt = await deliverInTime(settings, event);
  if (attempt.kind === 'confirmed') {
    if (!(await markDeliveredIfHeld(client, event))) return fenced(settings, event);
    settings.onEvent({ type: 'delivered', ...namesOf(event, event.attempts) });
    return 'delivered';
  }
  const { error } = attempt;
  const attempts = event.attempts + 1;
  if (attempts >= maxAttemptsOf(settings, event.type)) return park(settings, event, 'attempts', true, error);
  if (!(await postponeIfHeld(client, event, backoffMs(settings, attempts), textOf(error)))) {
    return fenced(settings, event);
  }
  settings.onEvent({ type: 'failed', error, ...namesOf(event, attempts) });
  return 'failed';
}

async function park(
  settings: RelaySettings,
  event: TakenEvent,
  reason: ParkReason,
  tried: boolean,
  error: unknown,
): Promise<DeliveryOutcome> {
  if (!(await parkIfHeld(settings.client, event, tried, textOf(error)))) return fenced(settings, event);
  const names = namesOf(event, event.attempts + (tried ? 1 : 0));
  if (tried) settings.onEvent({ type: 'failed', error, ...names });
  settings.onEvent({ type: 'parked', reason, error, ...names });
  return 'parked';
}

function fenced(settings: RelaySettings, event: TakenEvent): DeliveryOutcome {
  settings.onEvent({ type: 'fenced', ...namesOf(event, event.attempts) });
  return 'fenced';
}

type Attempted = { readonly kind: 'confirmed' } | { readonly kind: 'unconfirmed'; readonly error: unknown };

/** Waits for a delivery no longer than its time, whether it heeds its signal or not. */
async function deliverInTime({ deliver, deliveryTimeoutMs }: RelaySettings, event: TakenEvent): Promise<Attempted> {
  const late = new AbortController();
  const { id, aggregateType, aggregateId, type, payload, headers } = event;
  const send = async () =>
    deliver(
      { id, aggregateType, aggregateId, type, payload, headers },
      { signal: late.signal, timeoutMs: deliveryTimeoutMs },
    );
  try {
    if (await endsWithin(deliveryTimeoutMs, send())) return { kind: 'confirmed' };
  } catch (error) {
    return { kind: 'unconfirmed', error };
  }
  const error = new Error(`not confirmed within ${deliveryTimeoutMs} ms`);
  late.abort(error);
  return { kind: 'unconfirmed', error };
}

/** Full jitter: any time up to an end that doubles. */
function backoffMs({ initialBackoffMs, maxBackoffMs, random }: RelaySettings, attempts: number): number {
  return random() * Math.min(maxBackoffMs, initialBackoffMs * 2 ** (attempts - 1));
}

/** The date inside a UUIDv7 (RFC 9562, 5.7), which is what its consumer goes by; epoch milliseconds. */
export function madeAtMs(eventId: string): number {
  return Number.parseInt(eventId.replace('-', '').slice(0, 12), 16);
}

function namesOf({ id, type }: TakenEvent, attempts: number) {
  return { eventId: id, eventType: type, attempts };
}

function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll('\u0000', '').slice(0, MAX_ERROR_LENGTH).toWellFormed();
}
