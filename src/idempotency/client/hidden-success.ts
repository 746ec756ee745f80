import { type Metadata, status, type StatusObject } from '@grpc/grpc-js';
import { ERROR_DOMAIN, type RefusalReason } from '../errors';
import { readErrorDetails } from '../wire/error-details';
import { readReplayed } from './call-end';
import { hasNoHeaders } from './failure';

/**
 * Whether a failed attempt may have taken effect, or another one under its key: its caller must not do it anew under another
 * key before that is found out. All statuses do but those by which a server clearly refuses.
 */
export function mayHideSuccess(failed: StatusObject): boolean {
  switch (failed.code) {
    case status.INVALID_ARGUMENT:
    case status.NOT_FOUND:
    case status.ALREADY_EXISTS:
    case status.FAILED_PRECONDITION:
    case status.ABORTED:
    case status.OUT_OF_RANGE:
    case status.UNIMPLEMENTED:
    case status.UNAUTHENTICATED:
      return told(failed.metadata) === 'unknown';
    case status.PERMISSION_DENIED:
      return isOfTheStream(failed) || told(failed.metadata) === 'unknown';
    case status.RESOURCE_EXHAUSTED:
      return isOfTheAnswer(failed) || told(failed.metadata) === 'unknown';
    case status.OK:
    case status.CANCELLED:
    case status.UNKNOWN:
    case status.DEADLINE_EXCEEDED:
    case status.INTERNAL:
    case status.UNAVAILABLE:
    case status.DATA_LOSS:
      return true;
    default:
      return true;
  }
}

/** Whether an error was read from the record of the key, so that it tells of earlier attempts too. */
export function isOfTheRecord({ metadata }: StatusObject): boolean {
  return readReplayed(metadata) || told(metadata) === 'done';
}

/**
 * What an error's details tell of its request.
 *
 * - `refused`: nothing was done for this attempt, and nothing is said of others
 * - `done`: it was carried out, though its answer is not to be had
 * - `unknown`: somebody came before, or may have, and what became of that is not said
 */
type Told = 'refused' | 'done' | 'unknown';

/** The refusals of design 3.3. Once a key is known, no refusal says that nothing was done under it. */
const TOLD: Readonly<Record<RefusalReason, Told>> = {
  REQUEST_ID_MISSING: 'refused',
  REQUEST_ID_MALFORMED: 'refused',
  REQUEST_ID_FROM_FUTURE: 'refused',
  PRINCIPAL_MISSING: 'refused',
  RESPONSE_NOT_RECORDED: 'done',
  // Its record may be gone, or its answer was removed.
  REQUEST_ID_EXPIRED: 'unknown',
  // The same intent may have been sent before with another content, such as an amount that was corrected.
  REQUEST_ID_REUSED: 'unknown',
  REQUEST_IN_PROGRESS: 'unknown',
  CLAIM_LOST: 'unknown',
  // Its effect outside may have begun.
  REQUEST_PARKED: 'unknown',
  // The first arrival, which had no key either, may have run.
  KEYLESS_RETRY: 'unknown',
  STORE_UNAVAILABLE: 'unknown',
};

function told(trailers: Metadata): Told {
  const { domain, reason, unreadable } = readErrorDetails(trailers);
  if (unreadable) return 'unknown';
  if (domain !== ERROR_DOMAIN) return 'refused';
  // A server that is newer than this client has reasons of its own.
  return isRefusalReason(reason) ? TOLD[reason] : 'unknown';
}

function isRefusalReason(reason: string | undefined): reason is RefusalReason {
  return reason !== undefined && Object.hasOwn(TOLD, reason);
}

/** Servers run a request before they find its answer too large to send: grpc-js and C++, Go. */
const ANSWER_TOO_LARGE = /(sent|trying to send) message larger than max/i;

/** Whether RESOURCE_EXHAUSTED is about an answer: too large for this side, which says so without headers, or for the server. */
function isOfTheAnswer(failed: StatusObject): boolean {
  return hasNoHeaders(failed) || ANSWER_TOO_LARGE.test(failed.details);
}

/** Whether PERMISSION_DENIED is what grpc-js makes of a stream that was reset with INADEQUATE_SECURITY, at any time of it. */
function isOfTheStream(failed: StatusObject): boolean {
  return hasNoHeaders(failed) && failed.details.endsWith('Protocol not secure enough');
}
