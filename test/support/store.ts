import { connect, type Database } from '../../src/database/connect';
import type { Prisma } from '../../src/gen/prisma/client';
import {
  type IdempotencyStore,
  type MethodPolicy,
  openPostgresStore,
  type SqlClient,
} from '../../src/idempotency/index';
import { recordId } from '../../src/idempotency/record-id';
import type {
  ClaimOutcome,
  ClaimRequest,
  HeldClaim,
  RecordedAnswer,
  IsolationLevel,
} from '../../src/idempotency/store/store';
import { policyOf } from './claim-requests';
import { createTestDatabase, type TestDatabase } from './postgres';

export type PaymentsStore = IdempotencyStore<Prisma.TransactionClient>;

/** A record as the tests look at it. */
export interface StoredRecord {
  readonly state: string;
  readonly attempt: number;
  readonly owner_token: string;
  readonly instance: string;
  readonly response: Buffer | null;
  readonly status_code: number | null;
  readonly lease_ms: number;
}

/** A store on a database of its own. */
export interface TestStore {
  readonly store: PaymentsStore;
  readonly database: TestDatabase;
  readonly connections: Database;
  /** Another store on the same database, as another process would have it. */
  open(options?: { readonly records?: SqlClient; readonly instance?: string }): Promise<PaymentsStore>;
  /** The record of a request, by its primary key. */
  record(request: ClaimRequest): Promise<StoredRecord | undefined>;
  /** Lets the lease of a request's claim be over. */
  endLease(request: ClaimRequest): Promise<void>;
  close(): Promise<void>;
}

/** How long a business transaction of these tests may last. */
export const LIMITS = { maxWaitMs: 5_000, timeoutMs: 15_000 };

/** How the answers of these tests are recorded. */
export const TERMS = { idleMs: 15_000, keepAnswer: true };

/** Opens a store that knows the methods of PaymentsService which tests claim. Call `close` in `afterAll`. */
export async function openTestStore(
  policies: readonly MethodPolicy[] = [policyOf('CreatePayment'), policyOf('RefundPayment')],
): Promise<TestStore> {
  const database = await createTestDatabase();
  const connections = connect({ connectionString: database.connectionString });
  const open: TestStore['open'] = (options = {}) =>
    openPostgresStore({ business: connections.transactions, records: connections.store, policies, ...options });
  return {
    ...{ database, connections, open, store: await open() },
    record: async (request) => {
      const [row] = await database.rows<StoredRecord & Record<string, unknown>>(
        `SELECT *, extract(epoch FROM lease_until - created_at)::float8 * 1000 AS lease_ms
         FROM idempotency_record WHERE bucket = $1 AND id = $2`,
        [request.key.bucket, idOf(request)],
      );
      return row;
    },
    endLease: async (request) => {
      await database.rows(`UPDATE idempotency_record SET lease_until = now() WHERE bucket = $1 AND id = $2`, [
        request.key.bucket,
        idOf(request),
      ]);
    },
    close: async () => {
      await connections.close();
      await database.drop();
    },
  };
}

/** The id under which a request is recorded. */
export function idOf({ scope, policy, key }: ClaimRequest): string {
  return recordId({ scope, path: policy.path, key });
}

/** Claims and expects to get it. */
export async function claim(store: PaymentsStore, request: ClaimRequest): Promise<HeldClaim> {
  return held(await store.claim(request));
}

/** The claim of an outcome that must be `granted`. */
export function held(outcome: ClaimOutcome): HeldClaim {
  if (outcome.kind !== 'granted') throw new Error(`not granted but ${outcome.kind}`, { cause: outcome });
  return outcome.claim;
}

/** A successful answer of these bytes. */
export function answerOf(response: Buffer | string): RecordedAnswer {
  return { code: 0, message: '', response: Buffer.from(response), trailers: undefined };
}

/** Records an answer in a transaction of its own; false when the claim was no longer held. */
export function complete(store: PaymentsStore, claimed: HeldClaim, answer: RecordedAnswer): Promise<boolean> {
  return transactUnlessFenced(store, (tx) => store.completeIfHeld(tx, claimed, answer, TERMS));
}

/** Runs a transaction; false when its fence refused. */
export async function transactUnlessFenced(
  store: PaymentsStore,
  work: (tx: Prisma.TransactionClient) => Promise<void>,
  isolationLevel?: IsolationLevel,
): Promise<boolean> {
  try {
    await store.transaction(work, { ...LIMITS, isolationLevel });
    return true;
  } catch (error) {
    if (store.readFault(error).fenced) return false;
    throw error;
  }
}
