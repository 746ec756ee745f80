import type { StatusObject } from '@grpc/grpc-js';
import type { StopReason } from '../events';
import type { CallFailure } from './call-failure';
import type { CallKey } from './call-key';

/** A call that failed and is not sent again, for the text of its error. */
export interface StoppedCall extends Pick<CallFailure, 'attempts' | 'outcomeUnknown' | 'retriable'> {
  /** As on the wire. */
  readonly path: string;
  readonly why: StopReason;
  /** Why exactly, where more is known than the reason. */
  readonly said?: string | undefined;
  readonly key: CallKey;
  /** Metadata name of the key. */
  readonly requestIdName: string;
}

/**
 * Adds to a real error why no other attempt follows. Code and trailers stay as they were; only the text grows, so it may
 * differ from the one inside `grpc-status-details-bin`. It never holds the key, which is a field of the error.
 */
export function stopStatus(real: StatusObject, call: StoppedCall): StatusObject {
  const error = real.details === '' ? 'no text' : real.details;
  if (call.why === 'no_request_id') {
    const unknown = call.outcomeUnknown ? ' Whether this attempt took effect is unknown.' : '';
    return { ...real, details: `retry refused: no request-id. ${remedy(call)}${unknown} The error was: ${error}` };
  }
  const count = call.attempts === 1 ? '1 attempt' : `${call.attempts} attempts`;
  const rest = [
    call.said ?? cause(call.why),
    ...(call.outcomeUnknown ? ['the outcome is unknown'] : []),
    ...advice(call),
  ];
  return { ...real, details: `${error} (gave up after ${count}: ${rest.join('; ')})` };
}

function cause(why: Exclude<StopReason, 'no_request_id'>): string {
  switch (why) {
    case 'attempts':
      return 'no attempts left';
    case 'budget':
      return 'the retry budget of the server is used up';
    case 'deadline':
      return 'no time left before the deadline';
    case 'pushback':
      return 'the server asked for no retry';
    case 'unreadable':
      return "the server's error details can't be read";
    case 'key_expired':
      return 'the request-id is too old to be sent again';
    case 'channel':
      return 'the channel takes no more calls';
  }
}

function advice({ why, key, retriable, outcomeUnknown, requestIdName }: StoppedCall): readonly string[] {
  if (retriable) {
    const same = key.kind === 'key' ? `, with the same ${requestIdName}` : '';
    return [`the same call may be sent again later${same}`];
  }
  return why === 'key_expired' && outcomeUnknown ? ['find out what became of it before it is done anew'] : [];
}

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
