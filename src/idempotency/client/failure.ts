import { status, type StatusObject } from '@grpc/grpc-js';
import { ERROR_DOMAIN } from '../errors';
import type { RetryReason } from '../events';
import { readErrorDetails } from '../wire/error-details';
import { readReplayed } from './call-end';

/**
 * What the status of a failed attempt says. `transient`: another attempt may end otherwise. `final`: it is the answer.
 */
export type Failure = { readonly kind: 'transient'; readonly reason: RetryReason } | { readonly kind: 'final' };

/**
 * Sorts failures by design 5.
 *
 * @param ranOutOfTime whether the attempt ended because its own time was over
 */
export function readFailure(failed: StatusObject, ranOutOfTime: boolean): Failure {
  const final: Failure = { kind: 'final' };
  const transientIf = (holds: boolean, reason: RetryReason): Failure => (holds ? { kind: 'transient', reason } : final);
  switch (failed.code) {
    case status.UNAVAILABLE:
      return { kind: 'transient', reason: 'UNAVAILABLE' };
    case status.ABORTED: {
      const refusal = passingRefusal(failed);
      return refusal === undefined ? transientIf(saysWhen(failed), 'ABORTED') : { kind: 'transient', reason: refusal };
    }
    case status.RESOURCE_EXHAUSTED:
      return transientIf(isMadeByTransport(failed) || saysWhen(failed), 'RESOURCE_EXHAUSTED');
    case status.DEADLINE_EXCEEDED:
      return transientIf(ranOutOfTime, 'DEADLINE_EXCEEDED');
    case status.CANCELLED:
      return transientIf(isMadeByTransport(failed), 'CANCELLED');
    case status.INTERNAL:
      return transientIf(isMadeByTransport(failed), 'INTERNAL');
    case status.UNKNOWN:
      return transientIf(isMadeByTransport(failed), 'UNKNOWN');
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
 * The refusal under ABORTED that ends by itself. Any other ABORTED asks the caller to start over (`ETAG_MISMATCH`), unless
 * the service {@link saysWhen}.
 */
function passingRefusal({ metadata }: StatusObject): 'REQUEST_IN_PROGRESS' | 'CLAIM_LOST' | undefined {
  const { domain, reason } = readErrorDetails(metadata);
  if (domain !== ERROR_DOMAIN) return undefined;
  return reason === 'REQUEST_IN_PROGRESS' || reason === 'CLAIM_LOST' ? reason : undefined;
}

/**
 * Whether the server asks for the same call again, by RetryInfo, where the code alone leaves that open. What was recorded
 * stays, whatever its details say.
 */
function saysWhen({ metadata }: StatusObject): boolean {
  return !readReplayed(metadata) && readErrorDetails(metadata).retryDelayMs !== undefined;
}

/**
 * Whether a status came without any headers, as one made on this side does. A server's own has at least a content type,
 * unless the server sent initial metadata before it: then the texts have to tell.
 */
export function hasNoHeaders({ metadata }: Pick<StatusObject, 'metadata'>): boolean {
  return Object.keys(metadata.getMap()).length === 0;
}

/**
 * What grpc-js says of a stream that was reset, in the last place of one that was reset with ENHANCE_YOUR_CALM. Its own
 * faults and local cancels have other texts.
 */
const RESET = /^(Call cancelled$|Received RST_STREAM with code \d|Bandwidth exhausted or memory limit exceeded$)/;

/** What it says of HTTP answers that no gRPC server makes: a body that ends without a status, a broken gateway. */
const NO_STATUS = /^(No status information received|Received HTTP status code (200|5\d\d))$/;

/**
 * Whether a status with such a code was made from a broken stream instead of sent by the server (case J8). Only the texts
 * of grpc-js tell. A server that imitates them gains nothing: what may be retried at all is decided by level and key.
 */
function isMadeByTransport(failed: StatusObject): boolean {
  if (failed.code === status.UNKNOWN) return NO_STATUS.test(failed.details);
  return hasNoHeaders(failed) && RESET.test(failed.details);
}
