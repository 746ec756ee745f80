import { status } from '@grpc/grpc-js';
import { StatusError } from '../errors';

/** What leaves open to a caller whether its request was carried out. */
const OPEN: ReadonlySet<number> = new Set([
  ...[status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED],
  ...[status.UNKNOWN, status.INTERNAL, status.DATA_LOSS],
]);

/**
 * What the caller of a half-finished request is told of an error that its handler threw on purpose. A refusal would say
 * that nothing was done, nor will be: but the steps stay, and a retry or the completer resumes them, so the caller might do
 * the same again under another key. It is UNAVAILABLE instead, with the text, the reason and the wait of the handler. That
 * the call is never to be sent again is left out, whatever the code, as it would be wrong.
 */
export function halfFinishedError(error: StatusError): StatusError {
  const { code, details, violations, info, retry } = error;
  const isOpen = OPEN.has(code);
  if (isOpen && retry !== 'never') return error;
  const [told, text] = isOpen
    ? [code, details]
    : [status.UNAVAILABLE, `${details} (the request is half finished and goes on: retry with the same key)`];
  const wait = retry === 'never' ? undefined : retry;
  // For the log.
  return Object.assign(new StatusError(told, text, violations, info, wait), { cause: error });
}
