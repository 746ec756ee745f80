import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import { CompletionFailedError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';

describe('steps of an attempt whose claim somebody else took (design 4.10)', () => {
  let service: AttemptService;
  beforeAll(async () => (service = await startAttemptService({ policy: { leaseMs: 2_000 } })));
  afterAll(() => service.stop());

  it('a phase of an attempt that was overtaken is rolled back', async () => {
    const requestId = randomUUID();
    const before = await service.database.count('payments');
    let failure: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        await service.database.rows(
          `UPDATE idempotency_record SET owner_token = gen_random_uuid() WHERE request_id = '${requestId}'`,
        );
        failure = await attempt
          .phase('draft', (tx) => recordPayment(tx, request, attempt))
          .catch((error: unknown) => error);
        expect(attempt.signal.aborted).toBe(true);
        throw failure as Error;
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(failure).toBeInstanceOf(CompletionFailedError);
    expect(await service.database.count('payments')).toBe(before);
  });

  it('an effect of an attempt that was overtaken is not sent', async () => {
    const requestId = randomUUID();
    let sent = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        await service.database.rows(
          `UPDATE idempotency_record SET owner_token = gen_random_uuid() WHERE request_id = '${requestId}'`,
        );
        await attempt.effect('charge', async () => void (sent += 1));
        return payAndComplete(request, attempt);
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(sent).toBe(0);
  });

  it('an effect that its phase has begun is not sent by an attempt that knows that it was overtaken', async () => {
    const requestId = randomUUID();
    let sent = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.phase('draft', async () => 1, { begins: 'charge' });
        await service.database.rows(
          `UPDATE idempotency_record SET owner_token = gen_random_uuid(), lease_until = now() + interval '1 minute'
           WHERE request_id = '${requestId}'`,
        );
        if (!attempt.signal.aborted) await once(attempt.signal, 'abort');
        await attempt.effect('charge', async () => void (sent += 1));
        return payAndComplete(request, attempt);
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    await service.idempotency.idle();
    expect(sent).toBe(0);
  });
});
