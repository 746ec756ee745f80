import { status, type StatusObject } from '@grpc/grpc-js';
import type { Deadline } from './call-deadline';
import { hasNoHeaders } from './failure';

/** Whether an attempt ended because its own time was over. The server counts the same time and may be first to say so. */
export function isOwnTimeout(failed: StatusObject, deadline: Deadline): boolean {
  if (failed.code !== status.DEADLINE_EXCEEDED) return false;
  const isMadeHere = hasNoHeaders(failed) && failed.details.startsWith('Deadline exceeded');
  return isMadeHere || deadline.remainingMs() <= 0;
}

/**
 * Whether an attempt spent all its time waiting for a connection. Only the text of grpc-js tells. It decides on what an
 * attempt costs and on what its error says, never on whether a call may be sent again.
 */
export function neverLeft(failed: StatusObject): boolean {
  return hasNoHeaders(failed) && WAITED.test(failed.details) && !failed.details.includes('previous attempts');
}

/**
 * Adds to the text of such an attempt what is to be looked at. grpc-js tells only how long the last of them waited.
 *
 * @param peer as the call tells it: a gRPC target as long as there is no connection
 * @param waitedMs of the whole call
 */
export function withoutConnection(failed: StatusObject, peer: string, waitedMs: number): StatusObject {
  const seconds = Number((waitedMs / 1_000).toFixed(waitedMs < 10_000 ? 1 : 0));
  const what =
    peer === 'unknown'
      ? `no connection within ${seconds} s: does the server listen?`
      : `no connection to ${peer.replace(DNS_SCHEME, '')} within ${seconds} s: does a server listen there?`;
  return { ...failed, details: `${failed.details}: ${what}` };
}

/** What grpc-js puts before a target that was given without a scheme. */
const DNS_SCHEME = /^dns:(?!\/)/;

const WAITED = /^Deadline exceeded after .*[Ww]aiting for (LB pick|name resolution)$/;
