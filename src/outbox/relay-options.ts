import type { SqlClient } from '../idempotency/index';
import type { RelayEventListener } from './relay-events';

/** An event as it is delivered. */
export interface DeliverableEvent {
  /** A UUIDv7: the key of the call, the same at every delivery. */
  readonly id: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly type: string;
  readonly payload: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a delivery has to keep to. */
export interface DeliveryContext {
  /** Fires when the time is over; the delivery then counts as failed, whatever becomes of it. */
  readonly signal: AbortSignal;
  /** The time it has, milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Tells an event to its consumer, under the event's id. Resolves when the consumer has confirmed it, and never before;
 * rejects otherwise.
 */
export type Deliver = (event: DeliverableEvent, context: DeliveryContext) => Promise<void>;

/**
 * For how long after its making an event is sent, where nothing else is said: an hour less than the 24 h within which a
 * consumer takes a dated key for the first time (design 3.1), for clocks that differ.
 */
export const GIVE_UP_AFTER_MS = 23 * 3_600_000;

/** Terms of an event. One that is missing, or no number that the relay would take as an option, is the relay's own. */
export interface EventTerms {
  /** How old it may be when it is sent, milliseconds. */
  readonly giveUpAfterMs?: number;
  /** Deliveries before it is parked. */
  readonly maxAttempts?: number;
}

/** The terms of events of a type, for the relay and for whoever sends a parked one again. */
export type TermsOf = (type: string) => EventTerms;

/** How a relay works. Times are milliseconds. */
export interface RelayOptions {
  /** Runs the relay's statements: the business client, or one of its own. */
  readonly client: SqlClient;
  readonly deliver: Deliver;
  /** Most events of one round. Default 100. */
  readonly batchSize?: number;
  /** Most deliveries at once. Default 16. */
  readonly parallel?: number;
  /** Time of one delivery. Default 10,000. */
  readonly deliveryTimeoutMs?: number;
  /** For how long a round owns its events; longer than a delivery. None is begun that could outlast it. Default 60,000. */
  readonly leaseMs?: number;
  /** Deliveries before an event is parked. Default 20. */
  readonly maxAttempts?: number;
  /** How old an event may be when it is sent; less than its consumer's `max_key_age`. Default 23 h. */
  readonly giveUpAfterMs?: number;
  /**
   * Terms of events of a type that differ from the relay's: those of a consumer that goes by another key than the event's
   * id, or whose events nobody wants parked. Default: none.
   */
  readonly termsOf?: TermsOf;
  /** Upper end of the wait after the first failure; doubles with each. Default 1,000. */
  readonly initialBackoffMs?: number;
  /** The longest such wait. Default 300,000. */
  readonly maxBackoffMs?: number;
  /** A number from 0 up to but without 1: the jitter. Default `Math.random`. */
  readonly random?: () => number;
  /** The first wait when there was nothing to do; doubles while that is so. Default 100. */
  readonly idleMs?: number;
  /** The longest such wait: how late an event of another process may be noticed. Default 2,000. */
  readonly maxIdleMs?: number;
  /** For how long delivered events are kept. Default 7 days. */
  readonly retentionMs?: number;
  /** How often old events are deleted and the outbox is measured. Default 15,000. */
  readonly upkeepEveryMs?: number;
  /** Told what happens. Default: nobody. */
  readonly onEvent?: RelayEventListener;
}

/** The options with the defaults filled in. */
export type RelaySettings = Required<RelayOptions>;

const WHOLE = ['batchSize', 'parallel', 'maxAttempts'] as const;
const TIMES = [
  ...['deliveryTimeoutMs', 'leaseMs', 'giveUpAfterMs', 'initialBackoffMs', 'maxBackoffMs', 'idleMs', 'maxIdleMs'],
  ...['retentionMs', 'upkeepEveryMs'],
] as readonly (keyof RelayOptions & `${string}Ms`)[];

/**
 * Fills in the defaults and checks every option.
 *
 * @throws TypeError that names each option at fault
 */
export function relaySettings(options: RelayOptions): RelaySettings {
  const settings: RelaySettings = {
    ...{ batchSize: 100, parallel: 16, deliveryTimeoutMs: 10_000, leaseMs: 60_000, maxAttempts: 20 },
    ...{ giveUpAfterMs: GIVE_UP_AFTER_MS, initialBackoffMs: 1_000, maxBackoffMs: 300_000, random: Math.random },
    ...{ idleMs: 100, maxIdleMs: 2_000, retentionMs: 7 * 86_400_000, upkeepEveryMs: 15_000 },
    onEvent: () => undefined,
    termsOf: () => ({}),
    ...options,
  };
  const faults = [
    ...WHOLE.filter((name) => !isWhole(settings[name])).map((name) => `${name}: expected a whole number from 1 on`),
    ...TIMES.filter((name) => !isTime(settings[name])).map((name) => `${name}: expected milliseconds, more than 0`),
  ];
  if (settings.leaseMs <= settings.deliveryTimeoutMs) faults.push('leaseMs: expected more than deliveryTimeoutMs');
  if (faults.length > 0) throw new TypeError(`relay options: ${faults.join('; ')}`);
  return settings;
}

/** How old an event of a type may be when it is sent, milliseconds. */
export function giveUpAfterMsOf(
  { termsOf, giveUpAfterMs }: Pick<RelaySettings, 'termsOf' | 'giveUpAfterMs'>,
  type: string,
): number {
  const own = termsOf(type).giveUpAfterMs;
  return isTime(own) ? own : giveUpAfterMs;
}

/** Deliveries before an event of a type is parked. */
export function maxAttemptsOf(
  { termsOf, maxAttempts }: Pick<RelaySettings, 'termsOf' | 'maxAttempts'>,
  type: string,
): number {
  const own = termsOf(type).maxAttempts;
  return isWhole(own) ? own : maxAttempts;
}

function isWhole(value: number | undefined): value is number {
  return Number.isInteger(value) && Number(value) >= 1;
}

function isTime(value: number | undefined): value is number {
  return Number(value) > 0 && Number(value) < Infinity;
}
