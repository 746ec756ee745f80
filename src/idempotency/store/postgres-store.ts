import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { MethodPolicy } from '../policy';
import { recordId } from '../record-id';
import { claimKey, type ClaimContext } from './claim-key';
import type { SqlClient, TransactionClient } from './database';
import { isOutage, isSerializationFailure, provesRollback } from './database-error';
import { judge } from './judge';
import { registerMethods } from './methods';
import { readRecord } from './read-record';
import { readStatus } from './read-status';
import { ASSERT_NOT_ABORTED, COMPLETE_IF_HELD, RELEASE_IF_HELD } from './sql';
import type {
  ClaimRequest,
  HeldClaim,
  IdempotencyStore,
  RecordedAnswer,
  StatusSubject,
  TransactionLimits,
} from './store';

/** What a store is opened with. */
export interface PostgresStoreOptions<Tx extends SqlClient> {
  /** Runs the business transactions. */
  readonly business: TransactionClient<Tx>;
  /** Claims, look-ups and releases; a small pool of its own, so that busy handlers never keep a claim waiting. */
  readonly records: SqlClient;
  /** The methods that take keys. */
  readonly policies: readonly MethodPolicy[];
  /** Name of this process, kept with what it claims; for people only. Default: host name and process id. */
  readonly instance?: string;
}

/** Opens a store on a migrated database. Rejects when the database can't be reached. */
export async function openPostgresStore<Tx extends SqlClient>(
  options: PostgresStoreOptions<Tx>,
): Promise<IdempotencyStore<Tx>> {
  const { business, records, instance = `${hostname()}:${process.pid}` } = options;
  const methodIds = await registerMethods(records, options.policies);

  const placeOf = ({ policy, scope, key }: StatusSubject): Pick<ClaimContext, 'id' | 'methodId'> => {
    const methodId = methodIds.get(policy.path);
    if (methodId === undefined) throw new Error(`${policy.path} was not among the policies of this store`);
    return { id: recordId({ scope, path: policy.path, key }), methodId };
  };
  const contextOf = (request: ClaimRequest): ClaimContext => ({ records, request, instance, ...placeOf(request) });

  return {
    claim: async (request) => {
      try {
        return await claimKey(contextOf(request), randomUUID());
      } catch (error) {
        return { kind: 'unavailable', error };
      }
    },

    lookUp: async (request) => {
      const { id, methodId } = contextOf(request);
      return judge(await readRecord(records, request, id), request, methodId);
    },

    lookUpStatus: (subject) => readStatus(records, subject, placeOf(subject)),

    transaction: (work, { maxWaitMs, timeoutMs }) =>
      business.$transaction(work, { maxWait: maxWaitMs, timeout: timeoutMs }),

    completeIfHeld: (tx, claim, answer, limits) => completeIfHeld(tx, claim, answer, limits),

    assertNotAborted: async (tx) => {
      await tx.$queryRawUnsafe(ASSERT_NOT_ABORTED);
    },

    readFault: (error) => ({
      runAgain: isSerializationFailure(error),
      rolledBack: provesRollback(error),
      outage: isOutage(error),
    }),

    releaseIfHeld: async ({ bucket, id, ownerToken }) => {
      const rows = await records.$queryRawUnsafe<unknown[]>(RELEASE_IF_HELD, bucket, id, ownerToken);
      return rows.length > 0;
    },
  };
}

async function completeIfHeld(
  tx: SqlClient,
  { bucket, id, ownerToken }: HeldClaim,
  { code, message, response, trailers, resource }: RecordedAnswer,
  { timeoutMs }: TransactionLimits,
): Promise<boolean> {
  const rows = await tx.$queryRawUnsafe<unknown[]>(
    COMPLETE_IF_HELD,
    bucket,
    id,
    ownerToken,
    code,
    message === '' ? null : message,
    response ?? null,
    trailers ?? null,
    String(timeoutMs),
    resource ?? null,
  );
  return rows.length > 0;
}
