import { status, type StatusObject } from '@grpc/grpc-js';
import { ERROR_DOMAIN } from '../errors';
import { readErrorDetails } from '../wire/error-details';

/**
 * What the status of a failed attempt says. `transient`: another attempt may end otherwise; `reason` is the gRPC code
 * name or a refusal's reason. `final`: it is the answer.
 */
export type Failure = { readonly kind: 'transient'; readonly reason: string } | { readonly kind: 'final' };

/** Refusals under ABORTED that end by themselves. Any other ABORTED asks the caller to start over (`ETAG_MISMATCH`). */
const PASSING_REFUSALS: ReadonlySet<string> = new Set(['REQUEST_IN_PROGRESS', 'CLAIM_LOST']);

/**
 * Sorts failures by design 5.
 *
 * @param ranOutOfTime whether the attempt ended because its own time was over
 */
export function readFailure(failed: StatusObject, ranOutOfTime: boolean): Failure {
  const transient: Failure = { kind: 'transient', reason: status[failed.code] };
  const final: Failure = { kind: 'final' };
  const details = readErrorDetails(failed.metadata);
  const refusal = details.domain === ERROR_DOMAIN ? details.reason : undefined;
  switch (failed.code) {
    case status.UNAVAILABLE:
      return transient;
    case status.ABORTED:
      return refusal !== undefined && PASSING_REFUSALS.has(refusal) ? { kind: 'transient', reason: refusal } : final;
    case status.RESOURCE_EXHAUSTED:
      return details.retryDelayMs === undefined ? final : transient;
    case status.DEADLINE_EXCEEDED:
      return ranOutOfTime ? transient : final;
    case status.CANCELLED:
    case status.INTERNAL:
    case status.UNKNOWN:
      return isMadeByTransport(failed) ? transient : final;
    case status.OK:
    case status.INVALID_ARGUMENT:
    case status.NOT_FOUND:
    case status.ALREADY_EXISTS:
    case status.PERMISSION_DENIED:
    case status.FAILED_PRECONDITION:
    case status.OUT_OF_RANGE:
    case status.UNIMPLEMENTED:
    case status.DATA_LOSS:
    case status.UNAUTHENTICATED:
      return final;
    default:
      // A number that gRPC has no name for arrives as it was sent.
      return final;
  }
}

/**
 * Whether a status came without any headers, as one made on this side does. A server's own has at least a content type,
 * unless the server sent initial metadata before it: then the texts have to tell.
 */
export function hasNoHeaders({ metadata }: Pick<StatusObject, 'metadata'>): boolean {
  return Object.keys(metadata.getMap()).length === 0;
}

/** What grpc-js says of a stream that was reset. Its own faults and local cancels have other texts. */
const RESET = /^(Call cancelled$|Received RST_STREAM with code \d)/;

/** What it says of HTTP answers that no gRPC server makes: a body that ends without a status, a broken gateway. */
const NO_STATUS = /^(No status information received|Received HTTP status code (200|5\d\d))$/;

/**
 * Whether a CANCELLED, INTERNAL or UNKNOWN was made from a broken stream instead of sent by the server (case J8). Both
 * can only be told by the texts of grpc-js. A server that imitates them gains nothing: what may be retried at all is
 * decided by level and key.
 */
function isMadeByTransport(failed: StatusObject): boolean {
  if (failed.code === status.UNKNOWN) return NO_STATUS.test(failed.details);
  return hasNoHeaders(failed) && RESET.test(failed.details);
}
