import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { NetworkFault } from '../../src/card-network/faults';
import { startCardNetwork, type CardNetwork } from '../../src/card-network/start-card-network';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestReceipts, type TestReceipts } from '../support/receipts';
import { startTestService, type TestService } from '../support/service';
import { createStockClient } from '../support/stock-client';
import { until } from '../support/until';

describe('the clients that the service itself has, in its /metrics (design 3.4)', () => {
  let database: TestDatabase;
  let network: CardNetwork;
  let receipts: TestReceipts;
  let receiptsAddress: string;
  let service: TestService;
  const faults: NetworkFault[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    network = await startCardNetwork({ connectionString, nextFault: () => faults.shift() ?? { kind: 'ok' } });
    receipts = await startTestReceipts(connectionString);
    receiptsAddress = `127.0.0.1:${receipts.port}`;
    const environment = { CARD_NETWORK_ADDRESS: network.address, RECEIPTS_ADDRESS: receiptsAddress };
    service = await startTestService({ connectionString, useNetwork: true, environment });
  });
  afterAll(async () => {
    await service.stop();
    await Promise.all([network.stop(), receipts.stop()]);
    await database.drop();
  });

  const clientLines = async (): Promise<readonly string[]> =>
    (await service.metrics()).split('\n').filter((line) => line.startsWith('idempotency_client_'));

  it('are there from the start: what is counted at 0, and the budget of each target', async () => {
    const lines = await clientLines();
    expect(lines).toContain('idempotency_client_attempts_count 0');
    expect(lines).toContain('idempotency_client_retries_total{reason="UNAVAILABLE"} 0');
    expect(lines).toContain('idempotency_client_retries_refused_total{reason="budget"} 0');
    expect(lines).toContain(`idempotency_client_retry_budget_tokens{target="${network.address}"} 10`);
    expect(lines).toContain(`idempotency_client_retry_budget_tokens{target="${receiptsAddress}"} 10`);
  });

  it('count what the card network and the receipts service are asked', async () => {
    faults.push({ kind: 'outage' });
    const client = createStockClient(service.grpcPort);
    const call = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
    expect((await client.call(call)).code).toBe(status.OK);
    client.close();
    await until('the receipt is counted too', async () =>
      (await clientLines()).includes('idempotency_client_attempts_count 2'),
    );
    const lines = await clientLines();
    expect(lines).toContain('idempotency_client_retries_total{reason="UNAVAILABLE"} 1');
    expect(lines).toContain('idempotency_client_attempts_sum 3');
  });
});
