import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import type { Report } from '../../src/reconciliation/findings';
import type { ReconciliationOptions } from '../../src/reconciliation/reconcile';
import { paymentRequest } from './payment-requests';
import { type Reconciled, startReconciled } from './reconciliation';
import type { StockCall } from './stock-client';

/** The call that left a draft. */
export type AbandonedCall = StockCall & { readonly order: string; readonly requestId: string };

/** How many rows there are. */
export interface DraftCounts {
  readonly drafts: number;
  readonly payments: number;
  /** At the network, declined ones too. */
  readonly charges: number;
  readonly refunds: number;
}

/** Beside a payment that is in order: a draft, or none any more. */
export const LEFT: DraftCounts = { drafts: 1, payments: 1, charges: 1, refunds: 0 };
export const REMOVED: DraftCounts = { ...LEFT, drafts: 0 };

/** What becomes of the record of a request. */
export const OF_PARKED = `state = 'parked'`;
export const OF_FAILED = `state = 'completed', completed_at = now(), status_code = 13, results = NULL`;
export const OF_PAID = `state = 'completed', completed_at = now(), status_code = 0, response = '', results = NULL`;

/** Payments that were begun, and nobody who comes back for them. */
export interface AbandonedDrafts {
  readonly used: Reconciled;
  /** Makes a payment that fails before the network is asked, and whose caller does not come back. */
  abandon(): Promise<AbandonedCall>;
  /** Lets more time go by than callers and the completer take to come back. */
  aDayLater(): Promise<void>;
  setRecord(request: { readonly requestId: string }, set: string): Promise<unknown>;
  counts(): Promise<DraftCounts>;
  /** Compares everything of all time, and repairs unless told otherwise. */
  reconcile(options?: Partial<ReconciliationOptions>): Promise<Report>;
  /** Forgets everything, and makes a payment that is in order, so that the books are seen to belong together. */
  startOver(): Promise<void>;
}

/** Starts all services. Stop `used` in `afterAll`. */
export async function startAbandonedDrafts(): Promise<AbandonedDrafts> {
  const used = await startReconciled();
  const { database } = used;
  return {
    used,
    abandon: async () => {
      const order = `order-${newRequestId()}`;
      const requestId = newRequestId();
      const call = { order, requestId, method: 'CreatePayment', request: paymentRequest({ order_id: order }) };
      used.hold((point) =>
        point === 'before' ? Promise.reject(new Error('the process dies here')) : Promise.resolve(),
      );
      const { code } = await used.client.call(call);
      if (code !== status.INTERNAL) throw new Error(`expected to be left half way, got ${status[code]}`);
      used.hold(() => Promise.resolve());
      return call;
    },
    aDayLater: async () => {
      for (const table of ['payments', 'payment_drafts', 'card_network_authorizations', 'idempotency_record']) {
        await database.rows(`UPDATE ${table} SET created_at = created_at - interval '25 hours'`);
      }
      await database.rows(`UPDATE idempotency_record SET lease_until = lease_until - interval '25 hours'`);
    },
    setRecord: ({ requestId }, set) =>
      database.rows(`UPDATE idempotency_record SET ${set} WHERE request_id = $1`, [requestId]),
    counts: async () => ({
      drafts: await database.count('payment_drafts'),
      payments: await database.count('payments'),
      charges: await database.count('card_network_authorizations'),
      refunds: (await used.refunds()).count,
    }),
    reconcile: (options = {}) => used.reconcile({ since: new Date(0), ...options }),
    startOver: async () => {
      used.hold(() => Promise.resolve());
      await used.clear();
      await used.pay();
    },
  };
}
