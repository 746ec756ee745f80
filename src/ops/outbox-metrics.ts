import { Counter, Gauge, type Registry } from 'prom-client';

/** What the metrics count of what a relay tells. */
export type CountedOutboxEvent =
  | { readonly type: 'delivered' | 'failed' | 'parked' | 'fenced' | 'fault' }
  | { readonly type: 'purged'; readonly events: number }
  | {
      readonly type: 'observed';
      readonly observation: { readonly pending: number; readonly parked: number; readonly oldestAgeMs: number };
    };

/** Where a relay and an inbox tell what happens. */
export interface OutboxMetrics {
  readonly onRelayEvent: (event: CountedOutboxEvent) => void;
  /** Counts a message that had been taken before. */
  readonly onDuplicate: () => void;
}

/**
 * The `outbox_*` family and `inbox_duplicates_total` of design 3.4. The gauges are as the last look of this process found
 * the outbox: nothing is counted when the metrics are read. No label holds a type, an id or a text (case M1).
 */
export function createOutboxMetrics(registry: Registry): OutboxMetrics {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const pending = gauge('outbox_pending_events', 'Events that wait to be delivered, at the last look.');
  const parked = gauge('outbox_parked_events', 'Events that wait for a person, at the last look.');
  const oldest = gauge('outbox_oldest_event_age_seconds', 'Age of the oldest event that waits, at the last look.');
  const delivered = counter('outbox_delivered_total', 'Deliveries that were confirmed and noted by this process.');
  const failed = counter('outbox_failed_total', 'Deliveries that failed in this process.');
  const parkings = counter('outbox_parkings_total', 'Events that this process put aside for a person.');
  const fenced = counter('outbox_fenced_total', 'Outcomes not noted because another relay had the event by then.');
  const purged = counter('outbox_purged_total', 'Delivered events that this process deleted after their retention.');
  const faults = counter('outbox_faults_total', 'Statements of the relay that failed.');
  const duplicates = counter('inbox_duplicates_total', 'Messages that had been taken before.');

  return {
    onDuplicate: () => duplicates.inc(),
    onRelayEvent: (event) => {
      switch (event.type) {
        case 'delivered':
          return delivered.inc();
        case 'failed':
          return failed.inc();
        case 'parked':
          return parkings.inc();
        case 'fenced':
          return fenced.inc();
        case 'fault':
          return faults.inc();
        case 'purged':
          return purged.inc(event.events);
        case 'observed':
          pending.set(event.observation.pending);
          parked.set(event.observation.parked);
          return oldest.set(event.observation.oldestAgeMs / 1_000);
      }
    },
  };
}
