import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { connect } from '../../src/database/connect';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { loadPolicies, newRequestId, openPostgresStore, readRequestStatus } from '../../src/idempotency/index';
import { createOutbox } from '../../src/outbox/outbox';
import type { Books } from '../../src/reconciliation/comparison';
import type { ReconciliationEvent } from '../../src/reconciliation/events';
import type { Report } from '../../src/reconciliation/findings';
import { type NetworkBooks, openNetworkBooks } from '../../src/reconciliation/network-books';
import { reconcile, type ReconciliationOptions } from '../../src/reconciliation/reconcile';
import { findPaymentRecord, findRefundRecord } from '../../src/reconciliation/reconciler';
import { paymentRequest } from './payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from './payments-with-network';

/** A payment that was made through the service. */
export interface MadePayment {
  readonly order: string;
  readonly requestId: string;
  readonly paymentId: string;
}

/** The payments service, the card network, and who compares their books. */
export interface Reconciled extends PaymentsWithNetwork {
  readonly books: NetworkBooks;
  /** What reconciliations told. */
  readonly events: ReconciliationEvent[];
  /** Makes a payment, through the service, of an order of its own. */
  pay(): Promise<MadePayment>;
  /** Leaves a payment half finished behind its charge: its draft stands, and its record is claimed without a lease. */
  payHalfWay(): Promise<Omit<MadePayment, 'paymentId'>>;
  /** Makes a payment and loses it, as a restore would: its charge stays. */
  orphan(): Promise<MadePayment>;
  /** Makes a payment whose charge the network then does not know. */
  uncharged(): Promise<MadePayment>;
  /** Makes a payment, with a charge of its own, and gives it the order of another; where no index forbids it. */
  duplicateOf(other: MadePayment): Promise<MadePayment>;
  /** Charges the card of a payment once more, under the same key and in the same name. */
  chargeAgain(paymentId: string): Promise<void>;
  /** The state of a payment. */
  stateOf(paymentId: string): Promise<string | undefined>;
  /** Makes everything an hour older. */
  age(): Promise<void>;
  /** The record of a CreatePayment, as reconciliations read it. */
  readonly recordOf: Books['recordOf'];
  /** The same of a RefundPayment. */
  readonly refundRecordOf: Books['refundRecordOf'];
  /** Compares everything there is, and repairs unless told otherwise. */
  reconcile(options?: Partial<ReconciliationOptions>): Promise<Report>;
  /** How many refunds the network made, and their sum. */
  refunds(): Promise<{ readonly count: number; readonly sum: number }>;
  /** Forgets everything. */
  clear(): Promise<void>;
}

/** Kind and outcome of every finding. */
export function outcomesOf(report: Report): readonly string[] {
  return report.findings.map(({ finding, outcome }) => `${finding.kind} ${outcome.kind}`);
}

const AGED = ['payments', 'payment_drafts', 'refunds', 'card_network_authorizations'];

/** Starts all of it. Call `stop` in `afterAll`. */
export async function startReconciled(): Promise<Reconciled> {
  const used = await startPaymentsWithNetwork();
  const { client, database: tested, network } = used;
  const database = connect({ connectionString: tested.connectionString });
  const books = openNetworkBooks(network.address);
  const policy = loadPolicies(descriptorSet).get('/payments.v1.PaymentsService/CreatePayment');
  if (policy === undefined) throw new Error('no CreatePayment');
  const store = await openPostgresStore({
    business: database.transactions,
    records: database.store,
    policies: [policy],
  });
  const events: ReconciliationEvent[] = [];

  const send = async () => {
    const order = `order-${randomUUID()}`;
    const requestId = newRequestId();
    const request = paymentRequest({ order_id: order });
    return { order, requestId, answer: await client.call({ method: 'CreatePayment', request, requestId }) };
  };
  const pay = async (): Promise<MadePayment> => {
    const { answer, ...made } = await send();
    if (answer.response === undefined) throw new Error(answer.details);
    return { ...made, paymentId: String(answer.response.payment.payment_id) };
  };
  const payThen = async (sql: string, ...values: readonly string[]): Promise<MadePayment> => {
    const made = await pay();
    await tested.rows(sql, [made.paymentId, ...values]);
    return made;
  };
  return {
    ...{ ...used, books, events, pay },
    recordOf: (request) => findPaymentRecord(database.store, request),
    refundRecordOf: (request) => findRefundRecord(database.store, request),
    orphan: () => payThen('DELETE FROM payments WHERE payment_id = $1'),
    uncharged: () => payThen('DELETE FROM card_network_authorizations WHERE reference = $1'),
    duplicateOf: ({ order }) => payThen('UPDATE payments SET order_id = $2 WHERE payment_id = $1', order),
    chargeAgain: async (paymentId) => {
      await tested.rows(
        `INSERT INTO card_network_authorizations (authorization_id, scope, request_id, reference, amount_minor, currency,
                                                  payment_method, state)
         SELECT gen_random_uuid(), scope, request_id, reference, amount_minor, currency, payment_method, state
         FROM card_network_authorizations WHERE reference = $1`,
        [paymentId],
      );
    },
    stateOf: async (paymentId) => {
      const sql = 'SELECT state FROM payments WHERE payment_id = $1';
      return (await tested.rows<{ state: string }>(sql, [paymentId]))[0]?.state;
    },
    payHalfWay: async () => {
      used.hold((point) =>
        point === 'after' ? Promise.reject(new Error('the process dies here')) : Promise.resolve(),
      );
      const { answer, ...made } = await send();
      used.hold(() => Promise.resolve());
      if (answer.code !== status.INTERNAL) throw new Error(`expected to be left half way, got ${status[answer.code]}`);
      return made;
    },
    age: async () => {
      for (const table of AGED) await tested.rows(`UPDATE ${table} SET created_at = created_at - interval '1 hour'`);
    },
    reconcile: (options = {}) =>
      reconcile({
        ...{ prisma: database.business, network: books, outbox: createOutbox(), repair: true },
        ...{ quietMs: policy.maxExecutionMs, since: new Date(Date.now() - 24 * 3_600_000) },
        resumedWithinMs: policy.maxKeyAgeMs,
        recordOf: (request) => findPaymentRecord(database.store, request),
        refundRecordOf: (request) => findRefundRecord(database.store, request),
        statusOf: (request) => readRequestStatus(store, policy, request),
        onEvent: (event) => events.push(event),
        ...options,
      }),
    refunds: async () => {
      const [row] = await tested.rows<{ count: number; sum: number }>(
        'SELECT count(*)::int AS count, coalesce(sum(amount_minor), 0)::int AS sum FROM card_network_refunds',
      );
      if (row === undefined) throw new Error('no row');
      return row;
    },
    clear: async () => {
      events.length = 0;
      const tables = [...AGED, 'card_network_refunds', 'idempotency_record', 'outbox_events', 'outbox_aggregates'];
      await tested.rows(`TRUNCATE ${tables.join(', ')}`);
    },
    stop: async () => {
      books.close();
      await database.close();
      await used.stop();
    },
  };
}
