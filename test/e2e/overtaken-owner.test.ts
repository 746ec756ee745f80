import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AuthorizerGate, createAuthorizerGate } from '../support/authorizer-gate';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { holdRecords } from '../support/record-hold';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';
import { endLeases, onlyRecord } from '../support/stored-record';

describe('an owner that is overtaken by another attempt in its own process (design 4.7, 4.8; case C1)', () => {
  let database: TestDatabase;
  let gate: AuthorizerGate;
  let service: TestService;
  let client: StockClient;

  beforeEach(async () => {
    database = await createTestDatabase();
    gate = createAuthorizerGate();
    service = await startTestService({ connectionString: database.connectionString, authorizer: gate.authorizer });
    client = createStockClient(service.grpcPort);
  });

  afterEach(async () => {
    client.close();
    await service.stop();
    await database.drop();
  });

  const pay = (): Promise<StockAnswer> =>
    client.call({ method: 'CreatePayment', request: paymentRequest({ order_id: `order-${requestId}` }), requestId });
  let requestId: string;

  /** One attempt whose lease is over, and the one that took it over; both wait for the authorizer. */
  async function startBoth(): Promise<{ readonly late: Promise<StockAnswer>; readonly current: Promise<StockAnswer> }> {
    requestId = randomUUID();
    const late = pay();
    await gate.asked(1);
    await endLeases(database);
    const current = pay();
    await gate.asked(2);
    return { late, current };
  }

  it('that has completed: changes nothing, and its caller is told the recorded answer', async () => {
    const { late, current } = await startBoth();
    gate.answer(2);
    const answer = await current;
    gate.answer(1);

    expect(answer.code).toBe(status.OK);
    const { code, bytes, trailers } = await late;
    expect(code).toBe(status.OK);
    expect(bytes).toEqual(answer.bytes);
    expect(trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await database.count('payments')).toBe(1);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
  });

  it('that still runs: changes nothing, and its caller is told that the claim is lost', async () => {
    const { late, current } = await startBoth();
    gate.answer(1);
    const { code, error } = await late;
    const paymentsBefore = await database.count('payments');
    gate.answer(2);

    expect({ code, reason: error.reason }).toEqual({ code: status.ABORTED, reason: 'CLAIM_LOST' });
    expect(paymentsBefore).toBe(0);
    expect((await current).code).toBe(status.OK);
    expect(await database.count('payments')).toBe(1);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
  });

  it('that still runs: gives back nothing that is not its own when its handler fails', async () => {
    const { late, current } = await startBoth();
    gate.fail(1);
    expect((await late).error.reason).toBe('CLAIM_LOST');
    expect(await onlyRecord(database)).toMatchObject({ state: 'claimed', attempt: 2 });
    gate.answer(2);

    expect((await current).code).toBe(status.OK);
    expect(await database.count('payments')).toBe(1);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 2 });
  });

  it('is not overtaken any more when its late completion was a moment earlier', async () => {
    requestId = randomUUID();
    const hold = await holdRecords(database, 'at the commit of a completion');
    const late = pay();
    await gate.asked(1);
    await endLeases(database);
    gate.answer(1);
    await hold.waiting(1);
    // The lease is over, but the completion has the row in hand: nobody waits for it, and nobody takes it.
    const askedAt = performance.now();
    expect((await pay()).error).toMatchObject({ reason: 'REQUEST_IN_PROGRESS', retryDelayMs: 500 });
    // Who waits for the row gives up after two seconds at the earliest.
    expect(performance.now() - askedAt).toBeLessThan(1_900);
    await hold.open();

    const first = await late;
    const second = await pay();
    expect(first.code).toBe(status.OK);
    expect(second.code).toBe(status.OK);
    expect(second.bytes).toEqual(first.bytes);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(gate.timesAsked()).toBe(1);
    expect(await onlyRecord(database)).toMatchObject({ state: 'completed', attempt: 1 });
  });
});
