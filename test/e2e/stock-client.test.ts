import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockClient } from '../support/stock-client';

describe('a stock client that knows nothing of this library', () => {
  let database: TestDatabase;
  let service: TestService;
  let client: StockClient;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await startTestService({ connectionString: database.connectionString });
    client = createStockClient(service.grpcPort);
  });

  afterAll(async () => {
    client.close();
    await service.stop();
    await database.drop();
  });

  it('pays once, is told the same again, and is refused what does not fit; the metrics say just that', async () => {
    const requestId = randomUUID();
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId };

    const first = await client.call(pay);
    const second = await client.call(pay);
    const otherAmount = await client.call({ ...pay, request: paymentRequest({ amount_minor: '1251' }) });
    const keyless = await client.call({ ...pay, requestId: undefined });

    expect(first.code).toBe(status.OK);
    expect(first.trailers.get('idempotent-replayed')).toEqual([]);
    expect(second.code).toBe(status.OK);
    expect(second.bytes).toEqual(first.bytes);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(otherAmount.code).toBe(status.FAILED_PRECONDITION);
    expect(otherAmount.error).toMatchObject({ reason: 'REQUEST_ID_REUSED', domain: 'idempotency.v1' });
    expect(keyless.code).toBe(status.INVALID_ARGUMENT);
    expect(keyless.error).toMatchObject({ reason: 'REQUEST_ID_MISSING', domain: 'idempotency.v1' });
    expect(await database.count('payments')).toBe(1);
    expect(await database.count('idempotency_record')).toBe(1);

    const metrics = await service.metrics();
    const counted = metrics
      .split('\n')
      .filter((line) => /^(idempotency_requests_total|payments_created_total)/.test(line) && !line.endsWith(' 0'))
      .map((line) => line.replace('grpc_service="payments.v1.PaymentsService",', ''));
    expect(counted.sort()).toEqual([
      'idempotency_requests_total{grpc_method="CreatePayment",outcome="claimed"} 1',
      'idempotency_requests_total{grpc_method="CreatePayment",outcome="mismatch"} 1',
      'idempotency_requests_total{grpc_method="CreatePayment",outcome="missing_key"} 1',
      'idempotency_requests_total{grpc_method="CreatePayment",outcome="replayed"} 1',
      'payments_created_total 1',
    ]);
  });
});
