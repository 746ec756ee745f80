import type { Logger } from 'pino';
import type { RetentionEventListener } from '../idempotency/index';

const MISSING_RIGHT =
  'the role of this process may not change the tables of records: run `grpc-idempotency maintain` every hour with the ' +
  'role that owns them';

/** Writes a line for what retention did, did not yet do, and could not do. No line holds a key or an account. */
export function logRetentionEvents(logger: Logger): RetentionEventListener {
  return (event) => {
    switch (event.type) {
      case 'day_created':
        return logger.info({ day: event.day }, 'a day of records was created');
      case 'day_dropped':
        return logger.info({ day: event.day, kept: event.kept }, 'a day of records was dropped');
      case 'day_held_back':
        return logger.warn({ day: event.day }, 'a day of records is over, but an attempt still runs in it');
      case 'day_postponed':
        return logger.warn({ day: event.day }, 'a day of records is over, but open transactions may still use it');
      case 'purged':
        return logger.info({ method: event.path, records: event.records }, 'undated records were deleted');
      case 'fault': {
        const what = event.missingRight ? MISSING_RIGHT : 'a step of retention failed';
        return logger.error({ step: event.step, err: event.error }, what);
      }
      case 'observed':
        // Numbers, for the metrics.
        return;
    }
  };
}
