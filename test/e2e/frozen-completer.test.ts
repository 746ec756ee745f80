import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { COMPLETE_IF_HELD } from '../../src/idempotency/store/sql/complete';
import { callUntilAnswered } from '../support/call-until-answered';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockClient } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const LEASE_MS = 2_000;
/** The lease, and as long again for the server to end the frozen transaction; with room for a busy machine. */
const SOON_MS = 2 * LEASE_MS + 4_000;

describe('a process that is frozen in the middle of its completion (design 4.8)', () => {
  let database: TestDatabase;
  let proxy: CommitProxy;
  let services: readonly [ServiceProcess, ServiceProcess];
  let clients: readonly [StockClient, StockClient];

  beforeEach(async () => {
    database = await createTestDatabase();
    const url = new URL(database.connectionString);
    url.searchParams.set('options', `-c idle_in_transaction_session_timeout=${LEASE_MS}`);
    proxy = await startCommitProxy(url.href);
    const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString(
      'base64',
    );
    services = await Promise.all([
      startServiceProcess({ connectionString: proxy.connectionString, descriptorSet }),
      startServiceProcess({ connectionString: database.connectionString, descriptorSet }),
    ]);
    clients = [createStockClient(services[0].grpcPort), createStockClient(services[1].grpcPort)];
  });

  afterEach(async () => {
    for (const client of clients) client.close();
    for (const service of services) service.kill('SIGKILL');
    await Promise.all(services.map(({ exited }) => exited));
    proxy.close();
    await database.drop();
  });

  it.each([
    ['after the fence, with the record in its hands', 'COMMIT'],
    ['before the fence, with rows of the business in its hands', COMPLETE_IF_HELD],
  ])('%s, holds nobody up for longer than its lease and as long again', async (_, statement) => {
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
    const stall = proxy.on(statement, 'stall before');
    const late = clients[0].call({ ...pay, deadlineMs: 60_000 });
    await stall.happened();
    services[0].kill('SIGSTOP');
    const startedAt = performance.now();

    // Duplicates are told at once that it runs.
    expect(await clients[1].call(pay)).toMatchObject({ error: { reason: 'REQUEST_IN_PROGRESS' } });
    expect(performance.now() - startedAt).toBeLessThan(LEASE_MS);
    const { answer } = await callUntilAnswered(clients[1], pay);

    expect(answer.code).toBe(status.OK);
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
    services[0].kill('SIGCONT');
    stall.letThrough();
    // Frozen before its fence, it can't know of the other's answer and asks to come again; then that is told.
    expect([status.OK, status.UNAVAILABLE]).toContain((await late).code);
    const told = await callUntilAnswered(clients[0], pay);
    expect(told.answer.bytes).toEqual(answer.bytes);
    expect(told.answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await database.count('payments')).toBe(1);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
  });
});
