import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type HoldPoint, holdRecords } from '../support/record-hold';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockCall, type StockClient } from '../support/stock-client';

describe('a claim that takes long (design 4.6, 4.7; case J11)', () => {
  let database: TestDatabase;
  let service: TestService;
  let client: StockClient;
  /** How often the handler has asked for an authorization. */
  let timesAsked: number;
  /** What another connection saw of the record each time. */
  let recordsSeen: number[];

  beforeEach(async () => {
    database = await createTestDatabase();
    timesAsked = 0;
    recordsSeen = [];
    const standIn = createStandInAuthorizer();
    const authorizer = {
      ...standIn,
      authorize: async (...request: Parameters<typeof standIn.authorize>) => {
        timesAsked += 1;
        recordsSeen.push(await database.count("idempotency_record WHERE state = 'claimed'"));
        return standIn.authorize(...request);
      },
    };
    service = await startTestService({ connectionString: database.connectionString, authorizer });
    client = createStockClient(service.grpcPort);
  });

  afterEach(async () => {
    client.close();
    await service.stop();
    await database.drop();
  });

  const points: readonly HoldPoint[] = ['before a claim', 'at the commit of a claim'];

  it.each(points)('held %s: the handler starts once, after the claim is committed', async (point) => {
    const hold = await holdRecords(database, point);
    const paid = client.call(createPayment());
    await hold.waiting(1);
    expect(timesAsked).toBe(0);
    await hold.open();

    expect((await paid).code).toBe(status.OK);
    expect(recordsSeen).toEqual([1]);
    expect(await database.count('payments')).toBe(1);
  });

  it.each(points)(
    'held %s, of a caller who hangs up meanwhile: no effect, and the key is free again',
    async (point) => {
      const hold = await holdRecords(database, point);
      const pay = createPayment();
      const hangUp = new AbortController();
      const cut = client.call({ ...pay, signal: hangUp.signal });
      await hold.waiting(1);
      hangUp.abort();
      expect((await cut).code).toBe(status.CANCELLED);
      // Whatever the server does on the same connection comes after the cancel has reached it.
      await client.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
      await hold.open();
      client.close();
      await service.stop();

      expect(recordsSeen).toEqual([]);
      expect(await database.count('payments')).toBe(0);
      expect(await database.count('idempotency_record')).toBe(0);
    },
  );
});

function createPayment(): StockCall {
  return { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
}
