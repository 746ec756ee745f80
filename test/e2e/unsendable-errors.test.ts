import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';

describe('an error that no block of headers holds, thrown by a handler', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  afterAll(() => service.stop());

  it.each([
    ['text', new StatusError(status.NOT_FOUND, 'x'.repeat(200_000))],
    ['text that is longer on the wire', new StatusError(status.NOT_FOUND, 'ç'.repeat(30_000))],
    [
      'fields at fault',
      new StatusError(status.INVALID_ARGUMENT, 'no', [{ field: 'order_id', description: 'x'.repeat(200_000) }]),
    ],
  ])('is INTERNAL to its caller, whose key is free, and others on the connection go on: %s', async (_, error) => {
    const requestId = randomUUID();
    service.handle({
      createPayment: (request, attempt) =>
        attempt.requestId === requestId ? Promise.reject(error) : payAndComplete(request, attempt),
    });

    const [told, other] = await Promise.all([
      service.pay({ requestId, deadlineMs: 3_000 }),
      service.pay({ deadlineMs: 3_000 }),
    ]);

    expect([told.code, other.code]).toEqual([status.INTERNAL, status.OK]);
    expect(told.details).toBe('internal error');
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'a reply could not be sent' }),
    );
    service.handle({ createPayment: payAndComplete });
    expect((await service.pay({ requestId })).code).toBe(status.OK);
  });
});
