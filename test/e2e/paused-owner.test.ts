import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { callUntilAnswered } from '../support/call-until-answered';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const LEASE_MS = 2_000;

describe('an owner that is paused for longer than its lease and wakes', () => {
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
    const { answer } = await callUntilAnswered(clients[1], pay);
    paused.kill('SIGCONT');
    paused.proceed();

    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expectReplayOf(await late, answer);
    await expectOnePayment(answer);
    expect(await metric(paused, 'idempotency_fenced_total')).toBe(1);
  });

  it('while the new owner still runs: changes nothing, and its caller is told that the claim is lost', async () => {
    const [paused, successor] = services;
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

    const late = clients[0].call(pay);
    await paused.authorizerAsked(1);
    paused.kill('SIGSTOP');
    const taken = callUntilAnswered(clients[1], pay);
    await successor.authorizerAsked(1);
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
  });

  async function expectOnePayment({ response }: StockAnswer): Promise<void> {
    const rows = await database.rows('SELECT payment_id FROM payments');
    expect(rows).toEqual([{ payment_id: response?.payment.payment_id }]);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
  }
});

function expectReplayOf({ code, bytes, trailers }: StockAnswer, answer: StockAnswer): void {
  expect(code).toBe(status.OK);
  expect(bytes).toEqual(answer.bytes);
  expect(trailers.get('idempotent-replayed')).toEqual(['true']);
}

async function metric({ opsPort }: ServiceProcess, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  const values = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
