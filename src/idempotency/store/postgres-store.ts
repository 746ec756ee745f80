import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { MethodPolicy } from '../policy';
import { recordId } from '../record-id';
import { checkDatabase } from './check-database';
import { checkStoreOptions } from './check-options';
import { type ClaimContext, claimKey, takeOverHalfFinished } from './claim-key';
import { completeIfHeld } from './complete-if-held';
import type { SqlClient, TransactionClient } from './database';
import { isFenced, isMissingDay, isOutage, isSerializationFailure, provesRollback } from './database-error';
import { createGiveBack } from './give-back';
import { countStranded, findHalfFinished } from './half-finished';
import { createClaimInserts, type NewClaim } from './insert-claim';
import { judge } from './judge';
import { endLeasesIfHeld, pauseIfHeld, publishIfHeld, releaseIfHeld, renewIfHeld, stillRunning } from './leases';
import type { ClaimOutcome, HeldClaim, TakeoverOutcome } from './outcomes';
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
 * @throws TypeError that names each option at fault and what was expected
 * @throws UnusableDatabaseError when it is too old, read-only, or without the tables
 */
export async function openPostgresStore<Tx extends SqlClient>(
  options: PostgresStoreOptions<Tx>,
): Promise<IdempotencyStore<Tx>> {
  checkStoreOptions(options);
  const { business, records, instance = `${hostname()}:${process.pid}` } = options;
  await checkDatabase(records);
  const methodIds = await registerMethods(records, options.policies);
  const context = { records, inserts: createClaimInserts(records) };
  const giveBack = createGiveBack(records);

  const subjectOf = ({ policy, scope, key }: StatusSubject) => {
    const methodId = methodIds.get(policy.path);
    if (methodId === undefined) throw new Error(`${policy.path} was not among the policies of this store`);
    return { id: recordId({ scope, path: policy.path, key }), methodId };
  };

  const placeOf = (subject: StatusSubject) => ({ bucket: subject.key.bucket, id: subjectOf(subject).id });

  const claimOrSay = async <Outcome extends ClaimOutcome | TakeoverOutcome>(
    request: ClaimRequest,
    claimBy: (context: ClaimContext, claim: NewClaim) => Promise<Outcome>,
  ): Promise<Outcome | { readonly kind: 'unavailable'; readonly error: unknown }> => {
    const doubtful = new Set<string>();
    try {
      const claim = { request, instance, takeoverToken: randomUUID(), doubtful, ...subjectOf(request) };
      const outcome = await claimBy(context, claim);
      // What it was granted with is in use, not in doubt.
      const said: TakeoverOutcome = outcome;
      if (said.kind === 'granted') doubtful.delete(said.claim.ownerToken);
      return outcome;
    } catch (error) {
      return { kind: 'unavailable', error: withRemedy(error) };
    } finally {
      // A statement whose answer was lost may have claimed the key, or do so yet: it would be blocked until its lease ends.
      for (const ownerToken of doubtful) giveBack({ ...placeOf(request), ownerToken });
    }
  };

  /** What can't be given back now is later: its key would be blocked to the end of its lease. */
  const orGiveBack = async <Result>(claims: readonly HeldClaim[], giving: Promise<Result>): Promise<Result> => {
    try {
      return await giving;
    } catch (error) {
      for (const claim of claims) giveBack(claim);
      throw error;
    }
  };

  return {
    claim: (request) => claimOrSay(request, claimKey),

    lookUp: async (request: ClaimRequest) => {
      const { id, methodId } = subjectOf(request);
      return judge(await readRecord(records, request, id), request, methodId);
    },

    lookUpStatus: (subject) => readStatus(records, subject, subjectOf(subject)),

    placeOf,

    stillRunning: (places) => stillRunning(records, places),

    // Said always (design 4.8): in one of a stricter level, such as a database may have by default, who waited for a lock goes
    // on with what there was before.
    transaction: (work, { maxWaitMs, timeoutMs, isolationLevel = 'ReadCommitted' }, isIdle) =>
      business.$transaction(work, {
        ...{ maxWait: maxWaitMs, timeout: timeoutMs, isolationLevel },
        ...(isIdle === undefined ? {} : { isIdle }),
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

    endLeasesIfHeld: (claims) => orGiveBack(claims, endLeasesIfHeld(records, claims)),

    pauseIfHeld: (claim) => orGiveBack([claim], pauseIfHeld(records, claim)),

    publishIfHeld: (claim, resource) => publishIfHeld(records, claim, resource),

    settle: (request, claim, withinMs) =>
      settle({ records, request, claim, withinMs, methodId: subjectOf(request).methodId }),

    findHalfFinished: (terms) => findHalfFinished(records, methodIds, terms),

    countStranded: (paths, overdueMs) => countStranded(records, methodIds, paths, overdueMs),

    takeOverHalfFinished: (request) => claimOrSay(request, takeOverHalfFinished),

    releaseIfHeld: (claim) => orGiveBack([claim], releaseIfHeld(records, claim)),
  };
}

/** What nobody made in time, everybody misses: whoever reads of it is to know what makes it. */
function withRemedy(error: unknown): unknown {
  if (!isMissingDay(error)) return error;
  const remedy = 'call runRetention at the start and every hour, or run "npx grpc-idempotency maintain"';
  return new Error(`${error.message}: ${remedy}`, { cause: error });
}
