import { credentials } from '@grpc/grpc-js';
import { type CallEnd, IdempotencyError, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient } from '../../src/payments/payments-client';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { failureOf } from '../support/failure-of';
import { startFaultyProxy } from '../support/faulty-proxy';
import { newPayment } from '../support/new-payment';

// Case P1, at a service with no rule of its business that tells a second order from a retry.
describe('an agent whose answer was lost, of a payment that was made', () => {
  let service: AttemptService;
  const ends: (() => void)[] = [];

  beforeAll(async () => {
    service = await startAttemptService();
    service.handle({ createPayment: payAndComplete });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterEach(() => ends.splice(0).forEach((end) => end()));

  afterAll(() => service.stop());

  /** Pays, and loses the answer. */
  const lose = async () => {
    const proxy = await startFaultyProxy(service.port, [
      { when: 'after', fault: (stream) => stream.session?.destroy() },
    ]);
    const payments = createPaymentsClient(proxy.address, {
      ...{ credentials: credentials.createInsecure(), maxAttempts: 1 },
    });
    ends.push(
      () => payments.close(),
      () => proxy.close(),
    );
    const [request, requestId] = [newPayment(), newRequestId()];
    const error = await failureOf(payments.createPayment(request, { requestId }));
    expect(error).toBeInstanceOf(IdempotencyError);
    expect(error).toMatchObject({ outcomeUnknown: true, retriable: true, requestId });
    const again = async (key: string | undefined) => {
      const told: CallEnd[] = [];
      const onEnd = (end: CallEnd): void => void told.push(end);
      const { payment } = await payments.createPayment(request, { requestId: key, onEnd });
      return { paymentId: payment?.paymentId, replayed: told[0]?.replayed };
    };
    return { told: error.requestId, again };
  };

  const paymentIds = async () =>
    (await service.database.rows<{ id: string }>('SELECT payment_id AS id FROM payments')).map(({ id }) => id);

  it('and who comes again with the key that it was told, is told the answer', async () => {
    const { told, again } = await lose();
    const { paymentId, replayed } = await again(told);
    expect(replayed).toBe(true);
    expect(await paymentIds()).toEqual([paymentId]);
  });

  it('and who comes again with a key of its own, pays twice: two keys are two intents', async () => {
    const { again } = await lose();
    const { paymentId, replayed } = await again(newRequestId());
    expect(replayed).toBe(false);
    expect(await paymentIds()).toHaveLength(2);
    expect(await paymentIds()).toContain(paymentId);
  });
});
