import { randomUUID } from 'node:crypto';
import type { ClaimOutcome, ClaimRequest, HeldClaim, LookUpOutcome } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from './claim-requests';
import { answerOf, KEYS, type Step, type Told, UNDATED } from './model';
import * as statements from './scheduler-statements';
import { answerOf as recorded, idOf, type PaymentsStore, TERMS, type TestStore, transactUnlessFenced } from './store';

const DAY_MS = 24 * 3_600_000;

/** The real thing: two stores on one database, and what the steps of one run have made. */
export interface World {
  /** Takes a step, and says what the store told. `tokenOf` names the handles as the model does. */
  take(step: Step, tokenOf: (handle: number) => number): Promise<Told>;
  /** The effects that were committed, as `[key, answer]`. */
  effects(): Promise<readonly (readonly [number, string])[]>;
  /** Claims that were handed out so far. */
  handles(): number;
}

interface Handle {
  readonly request: ClaimRequest;
  readonly claim: HeldClaim;
}

/** Leaves a transaction, so that it is rolled back. */
class RolledBack extends Error {}

/** Starts a run with new keys. A table `effect (request_id text, answer text)` must be there. */
export async function startWorld(opened: TestStore, stores: readonly PaymentsStore[]): Promise<World> {
  const policy = policyOf('CreatePayment', { maxKeyAgeMs: 3 * DAY_MS });
  const [now] = await opened.database.rows<{ ms: number }>('SELECT extract(epoch FROM now())::float8 * 1000 AS ms');
  const requestIds = Array.from({ length: KEYS }, (_, key) => {
    const daysAgo = KEYS - 1 - key;
    return key < UNDATED ? randomUUID() : datedKey(Math.round(now?.ms ?? 0) - daysAgo * DAY_MS);
  });
  const requestOf = (key: number, content: number): ClaimRequest =>
    claimRequest({ policy, requestId: requestIds[key] ?? '', orderId: `order-${String(content)}` });
  await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = '1970-01-01'`);
  await opened.database.rows('TRUNCATE effect');
  const handles: Handle[] = [];
  const storeOf = (index: number): PaymentsStore => stores[index % stores.length] ?? opened.store;

  const claim = async (store: number, request: ClaimRequest): Promise<string> => {
    const outcome = await storeOf(store).claim(request);
    if (outcome.kind === 'granted') handles.push({ request, claim: outcome.claim });
    return claimTold(outcome);
  };

  const complete = async (
    { request, claim: held }: Handle,
    store: PaymentsStore,
    answer: string,
    thrown: boolean,
  ): Promise<string> => {
    try {
      const committed = await transactUnlessFenced(store, async (tx) => {
        await tx.$executeRaw`INSERT INTO effect VALUES (${request.key.text}, ${answer})`;
        await store.completeIfHeld(tx, held, recorded(answer), TERMS);
        if (thrown) throw new RolledBack();
      });
      return String(committed);
    } catch (error) {
      if (!(error instanceof RolledBack)) throw error;
      return 'rolled back';
    }
  };

  const own = async (
    step: Extract<Step, { readonly held: number }>,
    handle: Handle,
    answer: string,
  ): Promise<string> => {
    if (step.do === 'take_over_seen') return takeOverSeen(handle);
    const store = storeOf(step.store);
    const { request, claim: held } = handle;
    switch (step.do) {
      case 'complete':
        return complete(handle, store, answer, false);
      case 'complete_and_throw':
        return complete(handle, store, answer, true);
      case 'renew':
        return String((await store.renewIfHeld([{ claim: held, leaseMs: policy.leaseMs }]))[0]);
      case 'release':
        return String(await store.releaseIfHeld(held));
      case 'publish':
        return String(await store.publishIfHeld(held, 'payments/1'));
      case 'end_lease':
        return String(await store.endLeasesIfHeld([held]));
      case 'settle': {
        const settlement = await store.settle(request, held, 10_000);
        if (settlement.kind === 'never_committed') handles.push({ request, claim: settlement.claim });
        return settlement.kind;
      }
    }
  };

  /** As a process does that has read the record before others moved. */
  const takeOverSeen = async ({ request, claim: seen }: Handle): Promise<string> => {
    const ownerToken = randomUUID();
    const { text, values } = statements.takeOver(request, seen.ownerToken, ownerToken);
    const rows = await opened.database.rows(text, values);
    if (rows.length > 0) handles.push({ request, claim: { ...seen, ownerToken } });
    return String(rows.length);
  };

  const update = async (key: number, change: string): Promise<Told> => {
    const request = requestOf(key, 0);
    await opened.database.rows(`UPDATE idempotency_record SET ${change} AND bucket = $1 AND id = $2`, [
      ...[request.key.bucket, idOf(request)],
    ]);
    return '';
  };

  return {
    handles: () => handles.length,
    effects: async () => {
      const rows = await opened.database.rows<{ request_id: string; answer: string }>(
        'SELECT request_id, answer FROM effect ORDER BY 1, 2',
      );
      return rows.map(({ request_id, answer }) => [requestIds.indexOf(request_id), answer] as const);
    },
    take: async (step, tokenOf) => {
      if ('held' in step) {
        const handle = handles.at(-1 - (step.held % handles.length));
        return handle === undefined ? 'skipped' : own(step, handle, answerOf(tokenOf(step.held)));
      }
      switch (step.do) {
        case 'claim':
          return claim(step.store, requestOf(step.key, step.content));
        case 'claim_twice_at_once': {
          const request = requestOf(step.key, step.content);
          return (await Promise.all([claim(0, request), claim(1, request)])).sort();
        }
        case 'claim_all_at_once': {
          // Handles in the order of the keys, as the model counts them.
          const requests = Array.from({ length: KEYS }, (_, key) => requestOf(key, step.content));
          const outcomes = await Promise.all(requests.map((request) => storeOf(step.store).claim(request)));
          outcomes.forEach((outcome, key) => {
            if (outcome.kind === 'granted')
              handles.push({ request: requests[key] as ClaimRequest, claim: outcome.claim });
          });
          return outcomes.map(claimTold);
        }
        case 'look_up':
          return lookUpTold(await storeOf(step.store).lookUp(requestOf(step.key, step.content)));
        case 'still_running': {
          const place = storeOf(step.store).placeOf(requestOf(step.key, 0));
          return String((await storeOf(step.store).stillRunning([place])).length === 1);
        }
        case 'leases_run_out':
          await opened.database.rows('UPDATE idempotency_record SET lease_until = now() WHERE request_id = ANY ($1)', [
            requestIds,
          ]);
          return '';
        case 'expire':
          return update(step.key, `state = 'expired' WHERE state = 'completed'`);
        case 'park':
          return update(step.key, `state = 'parked' WHERE state = 'claimed' AND lease_until <= now()`);
        case 'drop': {
          const { bucket } = requestOf(UNDATED + step.day, 0).key;
          await opened.database.rows(
            'UPDATE idempotency_retention SET dropped_through = greatest(dropped_through, $1)',
            [bucket],
          );
          await opened.database.rows(`DELETE FROM idempotency_record WHERE bucket > '1970-01-01' AND bucket <= $1`, [
            bucket,
          ]);
          return '';
        }
      }
    },
  };
}

function claimTold(outcome: ClaimOutcome): string {
  switch (outcome.kind) {
    case 'granted':
      return `granted ${String(outcome.claim.attempt)}${outcome.takeover ? ' by takeover' : ''}`;
    case 'in_progress':
      return `in_progress${outcome.resource === undefined ? '' : ` ${outcome.resource}`}`;
    case 'completed':
      return `completed ${outcome.answer.response?.toString() ?? ''}`;
    case 'unavailable':
      return `unavailable: ${String(outcome.error)}`;
    case 'not_kept':
    case 'mismatch':
    case 'from_future':
    case 'expired':
    case 'parked':
      return outcome.kind;
  }
}

function lookUpTold(outcome: LookUpOutcome): string {
  return outcome.kind === 'completed' ? `completed ${outcome.answer.response?.toString() ?? ''}` : outcome.kind;
}
