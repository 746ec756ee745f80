import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { startReceipts } from '../../src/receipts/receipts-app';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase } from '../support/postgres';
import { startTestService } from '../support/service';
import { createStockClient } from '../support/stock-client';
import { until } from '../support/until';

it('a payment ends in one mail: its event commits with it and is carried to RECEIPTS_ADDRESS', async () => {
  const database = await createTestDatabase();
  const { connectionString } = database;
  const receipts = await startReceipts({ connectionString, host: '127.0.0.1', port: 0, principal: () => 'payments' });
  const environment = { RECEIPTS_ADDRESS: `127.0.0.1:${receipts.port}` };
  const service = await startTestService({ connectionString, environment });
  const client = createStockClient(service.grpcPort);
  const pay = { method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId: newRequestId() };
  const paid = await client.call(pay);
  expect(paid.code).toBe(status.OK);
  expect((await client.call(pay)).code).toBe(status.OK);
  await until(
    'the event is delivered',
    async () => (await database.count("outbox_events WHERE state = 'delivered'")) === 1,
  );
  expect(await database.rows('SELECT payment_id, order_id, amount_minor::int AS amount FROM receipt_mails')).toEqual([
    { payment_id: paid.response?.payment.payment_id, order_id: 'order-1', amount: 1_250 },
  ]);
  expect(await database.count('outbox_events')).toBe(1);
  client.close();
  await service.stop();
  await receipts.stop();
  await database.drop();
});
