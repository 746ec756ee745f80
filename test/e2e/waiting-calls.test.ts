import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { connect, type Database } from '../../src/database/connect';
import { newRequestId } from '../../src/idempotency/index';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { insertDraftIfFirst, removeDraft } from '../../src/payments/draft-repository';
import { insertPaymentIfUnpaid } from '../../src/payments/payment-repository';
import { lockPayment, reserveRefund } from '../../src/payments/refund-repository';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';

jest.setTimeout(60_000);

describe.each(['read committed', 'repeatable read', 'serializable'])(
  'a call that waits for one of another process, where the level of the database is %s',
  (level) => {
    let database: TestDatabase;
    let service: TestService;
    let client: StockClient;
    /** Of the other process, whose transactions are repeated here statement for statement. */
    let other: Database;
    let charges = 0;

    beforeAll(async () => {
      database = await createTestDatabase();
      const url = new URL(database.connectionString);
      url.searchParams.set('options', `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`);
      const standIn = createStandInAuthorizer();
      service = await startTestService({
        connectionString: url.href,
        authorizer: {
          ...standIn,
          authorize: (...asked) => {
            charges += 1;
            return standIn.authorize(...asked);
          },
        },
      });
      client = createStockClient(service.grpcPort);
      other = connect({ connectionString: url.href });
    });
    beforeEach(() => (charges = 0));
    afterAll(async () => {
      client.close();
      await service.stop();
      await other.close();
      await database.drop();
    });

    const pay = (orderId: string) =>
      client.call({
        ...{ method: 'CreatePayment', requestId: newRequestId() },
        request: paymentRequest({ order_id: orderId }),
      });
    const waitsFor = (statement: string) => {
      const waiting = `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return until('the call waits', async () => (await database.count(`${waiting} AND query ~ '${statement}'`)) > 0);
    };

    it('a cancel gives back what a refund has left', async () => {
      const paid = await pay(`order-${randomUUID()}`);
      const paymentId = String(paid.response?.payment.payment_id);
      const cancelling = await other.business.$transaction(async (tx) => {
        const payment = await lockPayment(tx, 'local', paymentId);
        if (payment === null) throw new Error('no payment');
        const call = client.call({ method: 'CancelPayment', request: { payment_id: paymentId } });
        await waitsFor('FOR UPDATE');
        await reserveRefund(tx, payment, { amountMinor: 250n, reason: '', requestId: newRequestId() });
        return { call };
      });
      expect((await cancelling.call).code).toBe(status.OK);
      expect(
        await database.rows(
          'SELECT amount_minor::int AS amount FROM refunds WHERE payment_id = $1 ORDER BY amount_minor',
          [paymentId],
        ),
      ).toEqual([{ amount: 250 }, { amount: 1000 }]);
    });

    it('a second request for an order that is being recorded charges nobody', async () => {
      const orderId = `order-${randomUUID()}`;
      const draft = {
        ...{ paymentId: randomUUID(), scope: 'local', orderId, amountMinor: 1250n, currency: 'EUR' },
        ...{ paymentMethod: 'tok_visa', metadata: {}, requestId: newRequestId() },
      };
      await other.business.$transaction((tx) => insertDraftIfFirst(tx, draft));
      const second = await other.business.$transaction(async (tx) => {
        await removeDraft(tx, draft.paymentId);
        await insertPaymentIfUnpaid(tx, { ...draft, authorizationId: 'a' });
        const call = pay(orderId);
        await waitsFor('payment_drafts');
        return { call };
      });
      expect((await second.call).code).not.toBe(status.OK);
      expect(charges).toBe(0);
      expect(await database.count(`payments WHERE order_id = '${orderId}'`)).toBe(1);
    });
  },
);
