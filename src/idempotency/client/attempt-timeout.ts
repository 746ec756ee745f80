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
 * attempt costs, never on whether a call may be sent again.
 */
export function neverLeft(failed: StatusObject): boolean {
  return hasNoHeaders(failed) && WAITED.test(failed.details) && !failed.details.includes('previous attempts');
}

const WAITED = /^Deadline exceeded after .*[Ww]aiting for (LB pick|name resolution)$/;
