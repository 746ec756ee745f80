import type { StatusObject } from '@grpc/grpc-js';
import type { CallKey } from './call-key';
import type { StopReason } from './retry-decision';

/** A call whose last attempt failed and that is not sent again. */
export interface StoppedCall {
  /** As on the wire. */
  readonly path: string;
  readonly why: StopReason;
  /** Attempts that were sent, at least one. */
  readonly attempts: number;
  readonly key: CallKey;
  /** Metadata name of the key. */
  readonly requestIdName: string;
}

/**
 * Adds to a real error why no other attempt follows. Code and trailers stay as they were; only the text grows, so it may
 * differ from the one inside `grpc-status-details-bin`. It never holds the key.
 */
export function stopStatus(real: StatusObject, call: StoppedCall): StatusObject {
  const error = real.details === '' ? 'no text' : real.details;
  const count = call.attempts === 1 ? '1 attempt' : `${call.attempts} attempts`;
  switch (call.why) {
    case 'no_request_id': {
      const unknown = 'Whether this attempt took effect is unknown.';
      return { ...real, details: `retry refused: no request-id. ${remedy(call)} ${unknown} The error was: ${error}` };
    }
    case 'attempts':
      return { ...real, details: `${error} (gave up after ${count}: no attempts left; ${ASK_AGAIN})` };
    case 'deadline':
      return { ...real, details: `${error} (gave up after ${count}: no time left before the deadline; ${ASK_AGAIN})` };
    case 'pushback':
      return { ...real, details: `${error} (gave up after ${count}: the server asked for no retry)` };
    case 'channel':
      return { ...real, details: `${error} (gave up after ${count}: the channel takes no more calls; ${ASK_AGAIN})` };
  }
}

const ASK_AGAIN = 'the outcome is unknown, the same call may be sent again later';

function remedy({ path, key, requestIdName }: StoppedCall): string {
  switch (key.kind) {
    case 'malformed':
      return `The ${requestIdName} of ${path} can't be used: ${key.description}.`;
    case 'ignored':
      return `The policy of ${path} ignores keys: let it take one, or give the method an idempotency_level.`;
    case 'missing':
    case 'key':
      return `Send metadata ${requestIdName} with ${path}: one UUID per intent, the same on every attempt.`;
  }
}
