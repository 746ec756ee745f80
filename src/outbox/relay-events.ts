/** Which event a relay speaks of. */
export interface RelayedEvent {
  readonly eventId: string;
  readonly eventType: string;
  /** Deliveries of it that have failed, this one included. */
  readonly attempts: number;
}

/** How the outbox stands. */
export interface OutboxObservation {
  /** Events that wait, those behind parked ones included. */
  readonly pending: number;
  /** Events that wait for a person. */
  readonly parked: number;
  /** Age of the oldest event that waits and is not parked, milliseconds; 0 where there is none. */
  readonly oldestAgeMs: number;
}

/** What a relay did not get done; it tries again. */
export type RelayStep = 'take' | 'mark' | 'release' | 'sweep' | 'purge' | 'observe';

/** Why an event was put aside: too many failures, or so old that its consumer would refuse it. */
export type ParkReason = 'attempts' | 'too_old';

/** What happens to events, for metrics and logs. */
export type RelayEvent =
  | ({ readonly type: 'delivered' } & RelayedEvent)
  | ({ readonly type: 'failed'; readonly error: unknown } & RelayedEvent)
  | ({ readonly type: 'parked'; readonly reason: ParkReason; readonly error: unknown } & RelayedEvent)
  /** The outcome of a delivery was not noted: the lease was over, and the event is with another relay. */
  | ({ readonly type: 'fenced' } & RelayedEvent)
  | { readonly type: 'observed'; readonly observation: OutboxObservation }
  | { readonly type: 'purged'; readonly events: number }
  | { readonly type: 'fault'; readonly step: RelayStep; readonly error: unknown };

/** Called synchronously; it must be quick and must not throw. */
export type RelayEventListener = (event: RelayEvent) => void;
