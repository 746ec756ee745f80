import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { ClaimLostError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';
import { aborted, deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { holdRecords } from '../support/record-hold';
import type { StockCall } from '../support/stock-client';
import { onlyRecord } from '../support/stored-record';

describe('attempts that a process gives up when it ends (design 4.7, case N1)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    // With a lease of 30 seconds: whoever had to wait for its end would not be done in time.
    service = await startAttemptService();
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(() => service.stop());

  const newCall = (): StockCall => ({
    ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId: randomUUID() },
  });

  it('leave their keys at once: a retry runs, and their late completion changes nothing', async () => {
    const running = deferred();
    const goOn = deferred();
    const signalled = deferred<unknown>();
    let runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        if (runs === 1) {
          void aborted(attempt.signal).then(() => signalled.resolve(attempt.signal.reason));
          running.resolve();
          await goOn.promise;
        }
        return payAndComplete(request, attempt);
      },
    });
    const pay = newCall();
    const first = service.client.call(pay);
    await running.promise;
    expect((await service.client.call(pay)).error.reason).toBe('REQUEST_IN_PROGRESS');

    await service.idempotency.abandon();
    const retried = await service.client.call(pay);
    expect(await signalled.promise).toBeInstanceOf(ClaimLostError);
    goOn.resolve();
    const late = await first;

    expect(retried.code).toBe(status.OK);
    expect(retried.trailers.get('idempotent-replayed')).toEqual([]);
    expect(late.code).toBe(status.OK);
    expect(late.bytes).toEqual(retried.bytes);
    expect(late.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 2 });
    expect(service.events.filter(({ type }) => type === 'lease_ended')).toHaveLength(1);
  });

  it('are rolled back when they were completing, and had not come to the fence', async () => {
    const inTransaction = deferred();
    const goOn = deferred();
    let runs = 0;
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          const response = await recordPayment(tx, request, attempt);
          if (runs === 1) {
            inTransaction.resolve();
            await goOn.promise;
          }
          return response;
        }),
    });
    const pay = newCall();
    const first = service.client.call(pay);
    await inTransaction.promise;

    await service.idempotency.abandon();
    goOn.resolve();
    const late = await first;
    const paymentsBefore = await service.database.count('payments');
    const retried = await service.client.call(pay);

    expect(late).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(paymentsBefore).toBe(0);
    expect(retried.code).toBe(status.OK);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 2 });
  });

  it('are done when they were at their commit: giving them up waits for nobody and undoes nothing', async () => {
    const hold = await holdRecords(service.database, 'at the commit of a completion');
    service.handle({ createPayment: payAndComplete });
    const pay = newCall();
    const first = service.client.call(pay);
    await hold.waiting(1);

    // If it waited for the row, it would be here until the end of the test.
    await service.idempotency.abandon();
    await hold.remove();
    const answer = await first;
    const retried = await service.client.call(pay);

    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(retried.bytes).toEqual(answer.bytes);
    expect(await service.database.count('payments')).toBe(1);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('are the running ones only: what is recorded is replayed', async () => {
    service.handle({ createPayment: payAndComplete });
    const pay = newCall();
    const answer = await service.client.call(pay);

    await service.idempotency.abandon();

    expect((await service.client.call(pay)).bytes).toEqual(answer.bytes);
    expect(service.events.filter(({ type }) => type === 'lease_ended')).toEqual([]);
  });
});
