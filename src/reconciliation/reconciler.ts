import type { PrismaClient } from '../gen/prisma/client';
import { descriptorSet } from '../gen/descriptor-set';
import {
  findRecords,
  loadPolicies,
  openPostgresStore,
  readRequestStatus,
  type SeenRecord,
  type SqlClient,
} from '../idempotency/index';
import { createOutbox } from '../outbox/outbox';
import { compareOrder, type OrderName, type OrderReport } from './compare-order';
import type { ReconciliationListener } from './events';
import type { Report } from './findings';
import { REFUND_PAYMENT } from '../payments/carry-out-refund';
import { openNetworkBooks } from './network-books';
import { reconcile } from './reconcile';

const CREATE_PAYMENT = '/payments.v1.PaymentsService/CreatePayment';
/** As long as the record of a payment is kept, and less than the network keeps keys: what is older it refuses to repair. */
const DEFAULT_SINCE_MS = 7 * 24 * 3_600_000;

/** Where the two books are. */
export interface ReconcilerOptions {
  /** Ours. */
  readonly prisma: PrismaClient;
  /** For look-ups of records; the store pool. */
  readonly records: PrismaClient;
  /** Of the card network, for example `127.0.0.1:50061`. */
  readonly networkAddress: string;
}

/** One comparison. */
export interface ReconcilerRun {
  /** Default: the last 7 days. */
  readonly since?: Date | undefined;
  /** False only looks. */
  readonly repair: boolean;
  /** Default: nobody is told. */
  readonly onEvent?: ReconciliationListener;
}

/** Whoever compares the books, once or from time to time. */
export interface Reconciler {
  /** As `reconcile` says. What is younger than an attempt may run is left alone. */
  run(run: ReconcilerRun): Promise<Report>;
  /** Compares what both have of one order, as `compareOrder` says. */
  compareOrder(order: OrderName): Promise<OrderReport>;
  /** Ends the channels to the network; the database is its owner's to close. */
  close(): void;
}

/** Opens both books. Rejects when the database can't be used; the network is asked by `run`. */
export async function openReconciler({ prisma, records, networkAddress }: ReconcilerOptions): Promise<Reconciler> {
  const policy = loadPolicies(descriptorSet).get(CREATE_PAYMENT);
  if (policy === undefined) throw new Error(`${CREATE_PAYMENT} is not in the descriptor set`);
  const store = await openPostgresStore({ business: prisma, records, policies: [policy] });
  const network = openNetworkBooks(networkAddress);
  const books = {
    ...{ prisma, network, outbox: createOutbox(), quietMs: policy.maxExecutionMs },
    // A day: callers send no older key, and the completer waits an hour at most between two attempts.
    resumedWithinMs: policy.maxKeyAgeMs,
    recordOf: (request: RequestName) => findPaymentRecord(records, request),
    refundRecordOf: (request: RequestName) => findRefundRecord(records, request),
    statusOf: (request: RequestName) => readRequestStatus(store, policy, request),
  };
  return {
    run: ({ since = new Date(Date.now() - DEFAULT_SINCE_MS), ...run }) => reconcile({ ...books, ...run, since }),
    compareOrder: (order) => compareOrder(books, order),
    close: () => network.close(),
  };
}

/** The key of a request of an account. */
interface RequestName {
  readonly scope: string;
  readonly requestId: string;
}

/** The record of a CreatePayment of an account. */
export function findPaymentRecord(records: SqlClient, request: RequestName): Promise<SeenRecord | undefined> {
  return findRecord(records, CREATE_PAYMENT, request);
}

/** The record of a RefundPayment of an account. */
export function findRefundRecord(records: SqlClient, request: RequestName): Promise<SeenRecord | undefined> {
  return findRecord(records, REFUND_PAYMENT, request);
}

async function findRecord(
  records: SqlClient,
  path: string,
  { scope, requestId }: RequestName,
): Promise<SeenRecord | undefined> {
  const found = await findRecords(records, requestId);
  if (found.kind !== 'found') return undefined;
  return found.records.find((record) => record.scope === scope && record.path === path);
}
