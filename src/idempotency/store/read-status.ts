import type { SqlClient } from './database';
import { assertSubject, expiry, type RecordRow } from './judge';
import { LOOK_UP_STATUS } from './sql/look-up';
import type { RequestStatus, StatusSubject } from './outcomes';

/** A record as `LOOK_UP_STATUS` reads it, or what it says of a key without one (`state` is then null). */
interface StatusRow extends Pick<
  RecordRow,
  'state' | 'method' | 'scope' | 'requestId' | 'createdAtMs' | 'statusCode' | 'statusMessage' | 'resource' | 'tooOld'
> {
  /** Epoch milliseconds. */
  readonly completedAtMs: number | null;
}

/** Reads where a request stands. `place` is its primary key within its day, and the id of its method. */
export async function readStatus(
  records: SqlClient,
  subject: StatusSubject,
  place: { readonly id: string; readonly methodId: number },
): Promise<RequestStatus> {
  const { key, policy } = subject;
  const parameters = [key.bucket, place.id, key.dated?.atMs ?? null, policy.maxKeyAgeMs];
  const [row] = await records.$queryRawUnsafe<StatusRow[]>(LOOK_UP_STATUS, ...parameters);
  if (row === undefined) throw new Error('a look-up gave no row');
  return statusOf(row, subject, place.methodId);
}

function statusOf(row: StatusRow, subject: StatusSubject, methodId: number): RequestStatus {
  if (row.state === null) {
    return row.tooOld ? { kind: 'expired', since: undefined, resource: undefined } : { kind: 'unknown' };
  }
  assertSubject(row, subject, methodId);
  const known = { since: new Date(row.createdAtMs), resource: row.resource ?? undefined };
  switch (row.state) {
    case 'claimed':
      return { kind: 'in_progress', ...known };
    case 'completed':
      if (row.statusCode === null || row.completedAtMs === null) throw new Error('completed record without a status');
      return {
        kind: 'completed',
        ...known,
        code: row.statusCode,
        message: row.statusMessage ?? '',
        completedAt: new Date(row.completedAtMs),
        expiresAt: expiry(row.createdAtMs, subject),
      };
    case 'expired':
      return { kind: 'expired', ...known };
    case 'parked':
      return { kind: 'parked', ...known };
    default:
      throw new Error(`unknown state of a record: ${row.state}`);
  }
}
