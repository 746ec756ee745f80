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

const LEASE_MS = 2_000;

describe('a process that is killed while its handler runs (design 4.6; case B1)', () => {
  let database: TestDatabase;
  let killed: ServiceProcess;
  let second: ServiceProcess;
  let clients: readonly StockClient[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString(
      'base64',
    );
    [killed, second] = await Promise.all([
      startServiceProcess({ connectionString, descriptorSet, authorizerWaits: true }),
      startServiceProcess({ connectionString, descriptorSet }),
    ]);
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    second.kill('SIGKILL');
    await second.exited;
    await database.drop();
  });

  const ownerToken = async () =>
    (await database.rows<{ token: string }>('SELECT owner_token::text AS token FROM idempotency_record'))[0]?.token;

  it('is succeeded by another one after its lease, not before, and the payment is made once', async () => {
    const [first, other] = [createStockClient(killed.grpcPort), createStockClient(second.grpcPort)];
    clients = [first, other];
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

    const lost = first.call(pay);
    await killed.authorizerAsked(1);
    killed.kill('SIGKILL');
    expect(await killed.exited).toBe('SIGKILL');
    expect((await lost).code).toBe(status.UNAVAILABLE);
    const before = await onlyRecord(database);
    const tokenBefore = await ownerToken();
    const { answer, refusals } = await callUntilAnswered(other, pay);
    const after = await onlyRecord(database);

    expect(before).toMatchObject({ state: 'claimed', attempt: 1 });
    expect(refusals.length).toBeGreaterThan(0);
    for (const { code, error } of refusals) {
      expect({ code, reason: error.reason }).toEqual({ code: status.ABORTED, reason: 'REQUEST_IN_PROGRESS' });
    }
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(after).toMatchObject({ state: 'completed', attempt: 2 });
    // A takeover writes when its own lease ends, so the database itself says when it happened.
    const takenOverAtMs = after.leaseUntilMs - LEASE_MS;
    expect(takenOverAtMs).toBeGreaterThanOrEqual(before.leaseUntilMs);
    // Soon after, too: its callers come every 50 ms.
    expect(takenOverAtMs).toBeLessThan(before.leaseUntilMs + LEASE_MS);
    expect(await ownerToken()).not.toBe(tokenBefore);
    expect(await database.count('payments')).toBe(1);
    expect(await processMetric(second, 'idempotency_takeovers_total')).toBe(1);
  });
});
