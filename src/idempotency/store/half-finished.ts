import type { SqlClient } from './database';
import type { MethodIds } from './methods';
import type { HalfFinishedRequest, HalfFinishedTerms, StrandedRequests } from './outcomes';
import { COUNT_STRANDED, SELECT_HALF_FINISHED } from './sql/half-finished';

interface HalfFinishedRow extends Omit<HalfFinishedRequest, 'path' | 'fingerprint' | 'message'> {
  readonly method: number;
  readonly fingerprint: Uint8Array;
  readonly message: Uint8Array;
}

/** Half-finished requests that nobody has come back for. Methods that this database does not know have none. */
export async function findHalfFinished(
  records: SqlClient,
  methodIds: MethodIds,
  { paths, shortestWaitMs, longestWaitMs, limit }: HalfFinishedTerms,
): Promise<readonly HalfFinishedRequest[]> {
  const methods = idsOf(methodIds, paths);
  const rows = await records.$queryRawUnsafe<HalfFinishedRow[]>(
    SELECT_HALF_FINISHED,
    JSON.stringify([...methods.keys()]),
    shortestWaitMs,
    longestWaitMs,
    limit,
  );
  return rows.map(({ method, scope, requestId, fingerprint, message }) => {
    const path = methods.get(method);
    if (path === undefined) throw new Error(`a record of method ${method}, which was not asked for`);
    return { path, scope, requestId, fingerprint: Buffer.from(fingerprint), message: Buffer.from(message) };
  });
}

/** Half-finished requests of other methods that nobody resumes, by method. */
export async function countStranded(
  records: SqlClient,
  methodIds: MethodIds,
  paths: readonly string[],
  overdueMs: number,
): Promise<readonly StrandedRequests[]> {
  const others = idsOf(
    methodIds,
    [...methodIds.keys()].filter((path) => !paths.includes(path)),
  );
  if (others.size === 0) return [];
  return records.$queryRawUnsafe<StrandedRequests[]>(COUNT_STRANDED, JSON.stringify([...others.keys()]), overdueMs);
}

function idsOf(methodIds: MethodIds, paths: readonly string[]): ReadonlyMap<number, string> {
  return new Map([...methodIds].filter(([path]) => paths.includes(path)).map(([path, id]) => [id, path]));
}
