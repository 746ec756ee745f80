import type { Logger } from 'pino';

/** What the log has to say of what a relay tells. */
export type LoggedOutboxEvent =
  | {
      readonly type: 'delivered' | 'fenced';
      readonly eventId: string;
      readonly eventType: string;
      readonly attempts: number;
    }
  | {
      readonly type: 'failed';
      readonly eventId: string;
      readonly eventType: string;
      readonly attempts: number;
      readonly error: unknown;
    }
  | {
      readonly type: 'parked';
      readonly eventId: string;
      readonly eventType: string;
      readonly attempts: number;
      readonly reason: string;
      readonly error: unknown;
    }
  | { readonly type: 'purged' | 'observed' }
  | { readonly type: 'fault'; readonly step: string; readonly error: unknown };

/** Writes a line for every delivery that failed, every event that waits for a person, and every fault of a relay. */
export function logRelayEvents(logger: Logger): (event: LoggedOutboxEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'failed': {
        const { eventId, eventType, attempts, error } = event;
        return logger.warn({ eventId, eventType, attempts, err: error }, 'an event could not be delivered yet');
      }
      case 'parked': {
        const { eventId, eventType, attempts, reason, error } = event;
        return logger.error(
          { eventId, eventType, attempts, reason, err: error },
          'an event waits for a person, and holds back those of its aggregate: grpc-idempotency outbox',
        );
      }
      case 'fenced': {
        const { eventId, eventType } = event;
        return logger.warn({ eventId, eventType }, 'an outcome came after the lease; the event is delivered once more');
      }
      case 'fault':
        return logger.error({ step: event.step, err: event.error }, 'a step of the relay failed');
      case 'delivered':
      case 'purged':
      case 'observed':
        // Numbers, for the metrics.
        return;
    }
  };
}
