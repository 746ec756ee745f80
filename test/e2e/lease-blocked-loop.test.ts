import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { callUntilAnswered } from '../support/call-until-answered';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { processMetric } from '../support/process-metric';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockClient } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const LEASE_MS = 1_500;

describe('a handler that blocks the event loop of its process for 2.5 leases (design 4.7, case C3)', () => {
  let database: TestDatabase;
  let services: readonly [ServiceProcess, ServiceProcess];
  let clients: readonly [StockClient, StockClient];

  beforeAll(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    const changed = changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } });
    const descriptorSet = Buffer.from(changed).toString('base64');
    services = await Promise.all([
      startServiceProcess({ connectionString, descriptorSet, authorizerBlocksMs: 2.5 * LEASE_MS }),
      startServiceProcess({ connectionString, descriptorSet }),
    ]);
    clients = [createStockClient(services[0].grpcPort), createStockClient(services[1].grpcPort)];
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    for (const service of services) service.kill('SIGKILL');
    await Promise.all(services.map(({ exited }) => exited));
    await database.drop();
  });

  it('is overtaken, learns so before it answers, and changes nothing: one effect, one answer', async () => {
    const [blocked, successor] = services;
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

    const late = clients[0].call(pay);
    await blocked.authorizerAsked(1);
    const { answer, refusals } = await callUntilAnswered(clients[1], pay);
    const told = await late;

    expect(refusals.length).toBeGreaterThan(0);
    for (const { error } of refusals) expect(error.reason).toBe('REQUEST_IN_PROGRESS');
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(told.code).toBe(status.OK);
    expect(told.bytes).toEqual(answer.bytes);
    expect(told.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await database.rows('SELECT payment_id FROM payments')).toEqual([
      { payment_id: answer.response?.payment.payment_id },
    ]);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
    expect(await processMetric(blocked, 'idempotency_lease_renewals_total', 'result="lost"')).toBe(1);
    expect(await processMetric(blocked, 'idempotency_fenced_total')).toBe(1);
    expect(await processMetric(successor, 'idempotency_takeovers_total')).toBe(1);
  });

  it('and is overtaken by nobody completes, since its key is still its own', async () => {
    const pay = { method: 'CreatePayment', request: paymentRequest({ order_id: 'order-2' }), requestId: randomUUID() };

    const answer = await clients[0].call(pay);
    const retried = await clients[1].call(pay);

    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(retried.bytes).toEqual(answer.bytes);
    expect(await database.count("payments WHERE order_id = 'order-2'")).toBe(1);
    const rows = await database.rows('SELECT state, attempt FROM idempotency_record WHERE request_id = $1', [
      pay.requestId,
    ]);
    expect(rows).toEqual([{ state: 'completed', attempt: 1 }]);
  });
});
