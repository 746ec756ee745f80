import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { callUntilAnswered } from '../support/call-until-answered';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { processMetric } from '../support/process-metric';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';
import { until } from '../support/until';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const LEASE_MS = 2_000;

describe('an owner that is paused for three leases and wakes (design 4.7, 4.8; case C1)', () => {
  let database: TestDatabase;
  let services: readonly [ServiceProcess, ServiceProcess];
  let clients: readonly [StockClient, StockClient];

  beforeEach(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString(
      'base64',
    );
    const start = (): Promise<ServiceProcess> =>
      startServiceProcess({ connectionString, descriptorSet, authorizerWaits: true });
    services = await Promise.all([start(), start()]);
    clients = [createStockClient(services[0].grpcPort), createStockClient(services[1].grpcPort)];
  });

  afterEach(async () => {
    for (const client of clients) client.close();
    for (const service of services) service.kill('SIGKILL');
    await Promise.all(services.map(({ exited }) => exited));
    await database.drop();
  });

  it('after the new owner has completed: changes nothing, and its caller is told the recorded answer', async () => {
    const [paused, successor] = services;
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

    const late = clients[0].call(pay);
    await paused.authorizerAsked(1);
    paused.kill('SIGSTOP');
    successor.proceed();
    const pausedAtMs = performance.now();
    const { answer } = await callUntilAnswered(clients[1], pay);
    await delay(Math.max(0, pausedAtMs + 3 * LEASE_MS - performance.now()));
    paused.kill('SIGCONT');
    paused.proceed();

    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expectReplayOf(await late, answer);
    await expectOnePayment(answer);
    await expectLossCounted(paused);
  });

  it('while the new owner still runs: changes nothing, and its caller is told that the claim is lost', async () => {
    const [paused, successor] = services;
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

    const late = clients[0].call(pay);
    await paused.authorizerAsked(1);
    paused.kill('SIGSTOP');
    const pausedAtMs = performance.now();
    const taken = callUntilAnswered(clients[1], pay);
    await successor.authorizerAsked(1);
    // Longer than the lease of the new owner, who keeps it by renewing it.
    await delay(Math.max(0, pausedAtMs + 3 * LEASE_MS - performance.now()));
    paused.kill('SIGCONT');
    paused.proceed();
    const { code, error, trailersOnly } = await late;
    const paymentsBefore = await database.count('payments');
    const recordBefore = await onlyRecord(database);
    successor.proceed();
    const { answer } = await taken;

    expect({ code, reason: error.reason }).toEqual({ code: status.ABORTED, reason: 'CLAIM_LOST' });
    expect(error.retryDelayMs).toBeGreaterThan(0);
    expect(trailersOnly).toBe(true);
    expect(paymentsBefore).toBe(0);
    expect(recordBefore).toMatchObject({ state: 'claimed', attempt: 2 });
    expect(answer.code).toBe(status.OK);
    await expectOnePayment(answer);
    expectReplayOf(await clients[0].call(pay), answer);
    await expectLossCounted(paused);
    expect(await processMetric(successor, 'idempotency_lease_renewals_total', 'result="renewed"')).toBeGreaterThan(1);
  });

  it('and finds that its key went to nobody: renews its lease and completes', async () => {
    const [paused] = services;
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

    const answer = clients[0].call(pay);
    await paused.authorizerAsked(1);
    paused.kill('SIGSTOP');
    await until('its lease is over', async () => (await database.count(EXPIRED)) === 1);
    paused.kill('SIGCONT');
    await until('it has its lease again', async () => (await database.count(EXPIRED)) === 0);
    expect((await clients[1].call(pay)).error.reason).toBe('REQUEST_IN_PROGRESS');
    paused.proceed();

    expect((await answer).code).toBe(status.OK);
    expect((await answer).trailers.get('idempotent-replayed')).toEqual([]);
    expect(await database.count('payments')).toBe(1);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  async function expectOnePayment({ response }: StockAnswer): Promise<void> {
    const rows = await database.rows('SELECT payment_id FROM payments');
    expect(rows).toEqual([{ payment_id: response?.payment.payment_id }]);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
  }

  /** It was told once, by a renewal, and its completion was refused. */
  async function expectLossCounted(service: ServiceProcess): Promise<void> {
    expect(await processMetric(service, 'idempotency_lease_renewals_total', 'result="lost"')).toBe(1);
    expect(await processMetric(service, 'idempotency_fenced_total')).toBe(1);
  }
});

const EXPIRED = "idempotency_record WHERE state = 'claimed' AND lease_until < now()";

function expectReplayOf({ code, bytes, trailers }: StockAnswer, answer: StockAnswer): void {
  expect(code).toBe(status.OK);
  expect(bytes).toEqual(answer.bytes);
  expect(trailers.get('idempotent-replayed')).toEqual(['true']);
}
