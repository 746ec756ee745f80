import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { MethodPolicy } from '../policy';
import { recordId } from '../record-id';
import { checkDatabase } from './check-database';
import { type ClaimContext, claimKey, takeOverHalfFinished } from './claim-key';
import { completeIfHeld } from './complete-if-held';
import type { SqlClient, TransactionClient } from './database';
import { isFenced, isOutage, isSerializationFailure, provesRollback } from './database-error';
import { countStranded, findHalfFinished } from './half-finished';
import { createClaimInserts, type NewClaim } from './insert-claim';
import { judge } from './judge';
import { endLeasesIfHeld, pauseIfHeld, publishIfHeld, releaseIfHeld, renewIfHeld, stillRunning } from './leases';
import { registerMethods } from './methods';
import { readRecord } from './read-record';
import { readStatus } from './read-status';
import { settle } from './settle';
import { ASSERT_NOT_ABORTED } from './sql/complete';
import { recordStep, recordStepInTransaction } from './steps';
import type { ClaimRequest, IdempotencyStore, StatusSubject } from './store';

/** What a store is opened with. */
export interface PostgresStoreOptions<Tx extends SqlClient> {
  /** Runs the business transactions. */
  readonly business: TransactionClient<Tx>;
  /** Claims, look-ups, renewals and releases; a small pool of its own, so that busy handlers never keep a claim waiting. */
  readonly records: SqlClient;
  /** The methods that take keys. */
  readonly policies: readonly MethodPolicy[];
  /** Name of this process, kept with what it claims; for people only. Default: host name and process id. */
  readonly instance?: string;
}

/**
 * Opens a store on a migrated database. Rejects when the database can't be reached.
 *
 * @throws UnusableDatabaseError when it is too old, read-only, or without the tables
 */
export async function openPostgresStore<Tx extends SqlClient>(
  options: PostgresStoreOptions<Tx>,
): Promise<IdempotencyStore<Tx>> {
  const { business, records, instance = `${hostname()}:${process.pid}` } = options;
  await checkDatabase(records);
  const methodIds = await registerMethods(records, options.policies);
  const context = { records, inserts: createClaimInserts(records) };

  const subjectOf = ({ policy, scope, key }: StatusSubject) => {
    const methodId = methodIds.get(policy.path);
    if (methodId === undefined) throw new Error(`${policy.path} was not among the policies of this store`);
    return { id: recordId({ scope, path: policy.path, key }), methodId };
  };

  const claimOrSay = async <Outcome>(
    request: ClaimRequest,
    claimBy: (context: ClaimContext, claim: NewClaim) => Promise<Outcome>,
  ): Promise<Outcome | { readonly kind: 'unavailable'; readonly error: unknown }> => {
    let claim: NewClaim | undefined;
    try {
      claim = { request, instance, ownerToken: randomUUID(), ...subjectOf(request) };
      return await claimBy(context, claim);
    } catch (error) {
      // Its answer may be what was lost: then it would block its key until the end of its lease.
      if (claim !== undefined && isOutage(error)) void releaseLater(records, claim);
      return { kind: 'unavailable', error };
    }
  };

  return {
    claim: (request) => claimOrSay(request, claimKey),

    lookUp: async (request: ClaimRequest) => {
      const { id, methodId } = subjectOf(request);
      return judge(await readRecord(records, request, id), request, methodId);
    },

    lookUpStatus: (subject) => readStatus(records, subject, subjectOf(subject)),

    placeOf: (subject) => ({ bucket: subject.key.bucket, id: subjectOf(subject).id }),

    stillRunning: (places) => stillRunning(records, places),

    transaction: (work, { maxWaitMs, timeoutMs, isolationLevel }, isIdle) =>
      business.$transaction(work, {
        ...{ maxWait: maxWaitMs, timeout: timeoutMs },
        ...(isIdle === undefined ? {} : { isIdle }),
        ...(isolationLevel === undefined ? {} : { isolationLevel }),
      }),

    completeIfHeld: (tx, claim, answer, terms) => completeIfHeld(tx, claim, answer, terms),

    recordStepInTransactionIfHeld: (tx, claim, steps, idleMs) => recordStepInTransaction(tx, claim, steps, idleMs),

    recordStepIfHeld: (claim, steps) => recordStep(records, claim, steps),

    assertNotAborted: async (tx) => {
      await tx.$queryRawUnsafe(ASSERT_NOT_ABORTED);
    },

    readFault: (error) => ({
      fenced: isFenced(error),
      runAgain: isSerializationFailure(error),
      rolledBack: provesRollback(error),
      outage: isOutage(error),
    }),

    renewIfHeld: (renewals) => renewIfHeld(records, renewals),

    endLeasesIfHeld: (claims) => endLeasesIfHeld(records, claims),

    pauseIfHeld: (claim) => pauseIfHeld(records, claim),

    publishIfHeld: (claim, resource) => publishIfHeld(records, claim, resource),

    settle: (request, claim, withinMs) =>
      settle({ records, request, claim, withinMs, methodId: subjectOf(request).methodId }),

    findHalfFinished: (terms) => findHalfFinished(records, methodIds, terms),

    countStranded: (paths, overdueMs) => countStranded(records, methodIds, paths, overdueMs),

    takeOverHalfFinished: (request) => claimOrSay(request, takeOverHalfFinished),

    releaseIfHeld: (claim) => releaseIfHeld(records, claim),
  };
}

/** How often and how soon a claim whose outcome is unknown is given back, milliseconds. */
const RELEASE_AFTER_MS = [250, 1_000, 4_000, 16_000];

/** Gives back what may have been claimed. Where that fails too, the end of the lease does it. */
async function releaseLater(records: SqlClient, { request, id, ownerToken }: NewClaim): Promise<void> {
  for (const afterMs of RELEASE_AFTER_MS) {
    await delay(afterMs, undefined, { ref: false });
    const released = await releaseIfHeld(records, { bucket: request.key.bucket, id, ownerToken }).then(
      // Not held may be not arrived yet: the statement that was lost may be on its way.
      (held) => held,
      () => false,
    );
    if (released) return;
  }
}
