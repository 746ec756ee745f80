import { randomUUID } from 'node:crypto';
import { createDays } from '../../src/idempotency/index';
import { openJournal } from '../../src/idempotency/server/steps/journal';
import { findRecords, type SeenRecord } from '../../src/idempotency/store/operator';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest } from './claim-requests';
import { answerOf, claim, complete, idOf, openTestStore, type TestStore } from './store';

/** Records in every state, as somebody sees them who looks after the service. */
export interface OperatedStore extends TestStore {
  /** Sets columns of a request's record. */
  change(request: ClaimRequest, set: string): Promise<unknown>;
  /** The records of a key, of which there must be some. */
  found(requestId: string): Promise<readonly SeenRecord[]>;
  /** The only record of a request's key. */
  one(request: ClaimRequest): Promise<SeenRecord>;
  /** Makes a request whose owner died after it began an effect. Default: of a new undated key. */
  halfFinished(requestId?: string): Promise<ClaimRequest>;
  /** Makes a request that was tried too often. */
  parked(): Promise<ClaimRequest>;
  /** Makes a request that has its answer. */
  completed(requestId?: string): Promise<ClaimRequest>;
  /** Forgets all records. */
  clear(): Promise<unknown>;
}

/** The steps of a payment whose charge has begun, as an attempt stores them. */
export function stepsOfCharge(): { readonly recoveryPoint: string; readonly results: Buffer } {
  const journal = openJournal(undefined);
  journal.next('phase', 'draft');
  return journal.with({ kind: 'phase', name: 'draft', result: '"secret"' }, 'charge');
}

/** Opens a store on a database of its own. Call `close` in `afterAll`. */
export async function openOperatedStore(): Promise<OperatedStore> {
  const opened = await openTestStore();
  const { connections, database, store } = opened;
  await createDays(connections.store);
  const change = (request: ClaimRequest, set: string): Promise<unknown> =>
    database.rows(`UPDATE idempotency_record SET ${set} WHERE id = $1`, [idOf(request)]);
  const found = async (requestId: string): Promise<readonly SeenRecord[]> => {
    const answer = await findRecords(connections.store, requestId);
    if (answer.kind !== 'found') throw new Error(JSON.stringify(answer));
    return answer.records;
  };
  const halfFinished = async (requestId: string = randomUUID()): Promise<ClaimRequest> => {
    const request = claimRequest({ requestId });
    await store.recordStepIfHeld(await claim(store, request), stepsOfCharge());
    await opened.endLease(request);
    return request;
  };
  return {
    ...{ ...opened, change, found, halfFinished },
    one: async ({ key }) => {
      const [record, ...others] = await found(key.text);
      if (record === undefined || others.length > 0) throw new Error('expected one record');
      return record;
    },
    parked: async () => {
      const request = await halfFinished();
      await change(request, 'attempt = 10');
      const { kind } = await store.claim(request);
      if (kind !== 'parked') throw new Error(`expected to be parked, got ${kind}`);
      return request;
    },
    completed: async (requestId = randomUUID()) => {
      const request = claimRequest({ requestId });
      const answer = { ...answerOf('secret'), resource: 'payments/1' };
      await complete(store, await claim(store, request), answer);
      return request;
    },
    clear: () => database.rows('TRUNCATE idempotency_record, idempotency_record_kept'),
  };
}
