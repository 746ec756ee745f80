import { sameRequest } from '../fingerprint';
import type { ClaimRequest, LookUpOutcome, StatusSubject } from './outcomes';

/** A record as `LOOK_UP` reads it, or what it says of a key without one (`state` is then null). */
export interface RecordRow {
  readonly state: string | null;
  readonly method: number;
  readonly scope: string;
  readonly requestId: string;
  readonly fingerprint: Uint8Array;
  readonly ownerToken: string;
  readonly attempt: number;
  /** Epoch milliseconds. */
  readonly createdAtMs: number;
  readonly leaseLeftMs: number;
  readonly statusCode: number | null;
  readonly statusMessage: string | null;
  readonly response: Uint8Array | null;
  readonly trailers: Uint8Array | null;
  readonly resource: string | null;
  readonly answerKept: boolean;
  readonly recoveryPoint: string | null;
  readonly results: Uint8Array | null;
  /** Since the first claim, milliseconds. */
  readonly ageMs: number;
  readonly tooOld: boolean;
  readonly fromFuture: boolean;
}

/**
 * The one check that every path goes through before it says anything about a record: that it belongs to this very
 * (scope, method, key), and that the request is the one it was claimed for. A mismatch is a mismatch also while the first
 * attempt runs (design 4.4).
 *
 * @throws when two keys share an id, which a hash of 80 bits makes a sign of tampering; nobody is then told anything
 */
export function judge(row: RecordRow, request: ClaimRequest, methodId: number): LookUpOutcome {
  if (row.state === null) return { kind: 'absent' };
  assertSubject(row, request, methodId);
  if (!sameRequest(row.fingerprint, request.fingerprint)) return { kind: 'mismatch' };
  switch (row.state) {
    case 'claimed':
      return {
        ...{ kind: 'claimed', leaseLeftMs: row.leaseLeftMs, resource: row.resource ?? undefined },
        ageMs: attemptAgeMs(row, request.policy.leaseMs),
      };
    case 'completed':
      return completed(row, expiry(row.createdAtMs, request));
    case 'parked':
      return { kind: 'parked', resource: row.resource ?? undefined };
    case 'expired':
      return { kind: 'expired', tombstone: { resource: row.resource ?? undefined } };
    default:
      throw new Error(`unknown state of a record: ${row.state}`);
  }
}

/**
 * How long the running attempt has run, at least. The first one began with the record; when a later one began is not kept,
 * but not after its lease was prolonged last. Told as if its process had this one's `lease`.
 */
function attemptAgeMs({ attempt, ageMs, leaseLeftMs }: RecordRow, leaseMs: number): number {
  return attempt === 1 ? ageMs : Math.min(ageMs, Math.max(0, leaseMs - leaseLeftMs));
}

/**
 * Checks that a record is the subject's: a hash never decides alone.
 *
 * @throws when it is somebody else's
 */
export function assertSubject(
  row: Pick<RecordRow, 'scope' | 'method' | 'requestId'>,
  { scope, key }: StatusSubject,
  methodId: number,
): void {
  if (row.scope === scope && row.method === methodId && row.requestId === key.text) return;
  throw new Error(`record ${key.bucket} belongs to another scope, method or key with the same id`);
}

/** Until when a record is kept at least: its retention counts from the first claim. */
export function expiry(createdAtMs: number, { policy }: Pick<ClaimRequest, 'policy'>): Date {
  return new Date(createdAtMs + policy.retentionMs);
}

function completed(row: RecordRow, expiresAt: Date): LookUpOutcome {
  const { statusCode: code, statusMessage, response, trailers, resource, answerKept } = row;
  if (code === null) throw new Error('completed record without a status');
  if (!answerKept) return { kind: 'not_kept', code, resource: resource ?? undefined, expiresAt };
  return {
    kind: 'completed',
    answer: {
      code,
      message: statusMessage ?? '',
      response: response === null ? undefined : Buffer.from(response),
      trailers: trailers === null ? undefined : Buffer.from(trailers),
      resource: resource ?? undefined,
    },
    expiresAt,
  };
}
