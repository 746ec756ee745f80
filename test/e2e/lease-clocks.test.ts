import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { callUntilAnswered } from '../support/call-until-answered';
import { datedKey } from '../support/claim-requests';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockCall, type StockClient } from '../support/stock-client';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

const LEASE_MS = 2_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const RETENTION_MS = 3 * DAY_MS;

describe('processes whose clocks are a day wrong (design 4.6, 4.7)', () => {
  let database: TestDatabase;
  /** One a day ahead, one a day behind. */
  let services: readonly ServiceProcess[];
  let clients: readonly StockClient[];

  beforeAll(async () => {
    database = await createTestDatabase();
    const { connectionString } = database;
    const changed = changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS, retentionMs: RETENTION_MS } });
    const descriptorSet = Buffer.from(changed).toString('base64');
    services = await Promise.all(
      [DAY_MS, -DAY_MS].map((clockAheadMs) =>
        startServiceProcess({ connectionString, descriptorSet, clockAheadMs, authorizerWaits: true }),
      ),
    );
    clients = services.map(({ grpcPort }) => createStockClient(grpcPort));
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    for (const service of services) service.kill('SIGKILL');
    await Promise.all(services.map(({ exited }) => exited));
    await database.drop();
  });

  const both = [
    ['ahead', 0],
    ['behind', 1],
  ] as const;

  const at = <Value>(values: readonly Value[], index: number): Value => {
    const value = values[index];
    if (value === undefined) throw new Error(`nothing at ${index}`);
    return value;
  };

  const newCall = (requestId: string): StockCall => ({
    ...{ method: 'CreatePayment', request: paymentRequest({ order_id: `order-${requestId}` }), requestId },
  });

  const attemptOf = async (requestId: string): Promise<unknown> =>
    (await database.rows('SELECT state, attempt FROM idempotency_record WHERE request_id = $1', [requestId]))[0];

  it('keep what one has claimed from the other for as long as it runs, both ways', async () => {
    const calls = both.map(() => newCall(randomUUID()));
    const owned = calls.map((pay, index) => at(clients, index).call(pay));
    await Promise.all(services.map((service) => service.authorizerAsked(1)));
    for (const until = performance.now() + 1.5 * LEASE_MS; performance.now() < until; await delay(50)) {
      for (const [index, pay] of calls.entries()) {
        const { error } = await at(clients, 1 - index).call(pay);
        expect(error.reason).toBe('REQUEST_IN_PROGRESS');
        expect(error.retryDelayMs).toBeLessThanOrEqual(LEASE_MS);
      }
    }
    for (const service of services) service.proceed();
    const answers = await Promise.all(owned);

    for (const [index, pay] of calls.entries()) {
      expect(at(answers, index).code).toBe(status.OK);
      expect((await at(clients, 1 - index).call(pay)).bytes).toEqual(at(answers, index).bytes);
      expect(await attemptOf(pay.requestId ?? '')).toEqual({ state: 'completed', attempt: 1 });
    }
  });

  it.each(both)('judge dated keys by the database, the one that is %s like the other', async (_, index) => {
    const client = at(clients, index);
    for (const service of services) service.proceed();
    const answer = await client.call(newCall(datedKey(Date.now())));
    expect(answer.code).toBe(status.OK);
    // Kept from the claim on, by the clock that made the claim.
    const expiresAt = Date.parse(String(answer.trailers.get('idempotency-expires-at')[0]));
    expect(Math.abs(expiresAt - Date.now() - RETENTION_MS)).toBeLessThan(MINUTE_MS);

    expect((await client.call(newCall(datedKey(Date.now() - DAY_MS + MINUTE_MS)))).code).toBe(status.OK);
    expect((await client.call(newCall(datedKey(Date.now() - DAY_MS - MINUTE_MS)))).error.reason).toBe(
      'REQUEST_ID_EXPIRED',
    );
    expect((await client.call(newCall(datedKey(Date.now() + 4 * MINUTE_MS)))).code).toBe(status.OK);
    expect((await client.call(newCall(datedKey(Date.now() + 6 * MINUTE_MS)))).error.reason).toBe(
      'REQUEST_ID_FROM_FUTURE',
    );
  });

  it('take over from the one that died when its lease is over by the database, and not before', async () => {
    const [ahead] = services;
    if (ahead === undefined) throw new Error('no service');
    const pay = newCall(randomUUID());
    const spare = await startServiceProcess({
      ...{ connectionString: database.connectionString, clockAheadMs: DAY_MS, authorizerWaits: true },
      descriptorSet: Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: LEASE_MS } })).toString('base64'),
    });
    const dying = createStockClient(spare.grpcPort);
    const lost = dying.call(pay);
    await spare.authorizerAsked(1);
    spare.kill('SIGKILL');
    await spare.exited;
    await lost;
    dying.close();
    const leaseUntil = async (): Promise<number> => {
      const [row] = await database.rows<{ ms: number }>(
        'SELECT (extract(epoch FROM lease_until) * 1000)::float8 AS ms FROM idempotency_record WHERE request_id = $1',
        [pay.requestId],
      );
      return row?.ms ?? NaN;
    };
    const before = await leaseUntil();
    for (const service of services) service.proceed();
    const { answer, refusals } = await callUntilAnswered(at(clients, 1), pay);

    expect(answer.code).toBe(status.OK);
    expect(refusals.length).toBeGreaterThan(0);
    expect(await attemptOf(pay.requestId ?? '')).toEqual({ state: 'completed', attempt: 2 });
    // A takeover writes when its own lease ends, so the database itself says when it happened.
    expect((await leaseUntil()) - LEASE_MS).toBeGreaterThanOrEqual(before);
  });
});
