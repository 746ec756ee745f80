import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CompletionFailedError, StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  recordPayment,
  startAttemptService,
  toldText,
} from '../support/attempt-service';
import { failWrites } from '../support/failing-writes';

describe('a handler that uses complete in its own way (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  // An unhandled rejection, too, fails a run of these tests.
  afterAll(() => service.stop());

  const fault = () => service.events.find((event) => event.type === 'fault');

  const expectNothingRecorded = async (): Promise<void> => {
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'released' }));
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
  };

  it('and returns without it is INTERNAL, with a line that teaches, and the key is free', async () => {
    service.handle({ createPayment: () => Promise.resolve({ payment: undefined }) });

    expect(toldText(await service.pay())).toBe('internal error');

    expect(fault()?.what).toContain(
      'without attempt.complete, so there is nothing to replay and the key is free again',
    );
    expect(fault()?.what).toContain('return attempt.complete(async (tx) => …)');
    await expectNothingRecorded();
  });

  it('and swallows its error is never told as success', async () => {
    const broken = new Error('broken inside');
    service.handle({
      createPayment: async (request, attempt) => {
        const failing = attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          throw broken;
        });
        return failing.catch(() => ({ payment: undefined }));
      },
    });

    expect(toldText(await service.pay())).toBe('internal error');

    expect(fault()).toMatchObject({
      what: 'the handler returned an answer although its completion had failed',
      error: broken,
    });
    await expectNothingRecorded();
  });

  it('and swallows the refusal that was thrown inside is answered with that refusal', async () => {
    service.handle({
      createPayment: async (_, attempt) =>
        attempt
          .complete(() => Promise.reject(new StatusError(status.NOT_FOUND, 'no such order')))
          .catch(() => ({ payment: undefined })),
    });

    expect(await service.pay()).toMatchObject({ code: status.NOT_FOUND, details: 'no such order' });
    await expectNothingRecorded();
  });

  it('and completes again after a failure is answered with what was committed', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await expect(attempt.complete(() => Promise.reject(new Error('first')))).rejects.toThrow('first');
        return payAndComplete(request, attempt);
      },
    });

    expect(await service.pay()).toMatchObject({ code: status.OK });
    expect(await service.database.count('payments')).toBe(1);
  });

  it('and completes twice is refused the second time, and answered with the first', async () => {
    const requestId = randomUUID();
    let second: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        await payAndComplete(request, attempt);
        second = await payAndComplete({ ...request, orderId: 'order-2' }, attempt).catch((error: unknown) => error);
        return { payment: undefined };
      },
    });

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-1' } } });
    expect(second).toBeInstanceOf(CompletionFailedError);
    expect(String(second)).toContain('complete it once');
    expect((await service.pay({ requestId })).bytes).toEqual(answer.bytes);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('and completes twice at once is refused one of them', async () => {
    let second: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        const first = payAndComplete(request, attempt);
        second = await payAndComplete(request, attempt).catch((error: unknown) => error);
        return first;
      },
    });

    expect(await service.pay()).toMatchObject({ code: status.OK });
    expect(String(second)).toContain('already running; await it');
    expect(await service.database.count('payments')).toBe(1);
  });

  it('and does not wait for it is answered when it is done, with what it committed', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: (request, attempt) => {
        void payAndComplete(request, attempt);
        return Promise.resolve({ payment: undefined });
      },
    });

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-1' } } });
    expect((await service.pay({ requestId })).bytes).toEqual(answer.bytes);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('and does not wait for one that fails is never told as success', async () => {
    service.handle({
      createPayment: (_, attempt) => {
        void attempt.complete(() => Promise.reject(new Error('nobody looks')));
        return Promise.resolve({ payment: undefined });
      },
    });

    expect(toldText(await service.pay())).toBe('internal error');
    expect(String(fault()?.error)).toContain('nobody looks');
    await expectNothingRecorded();
  });

  it('and changes the answer afterwards changes nothing: the caller gets the committed bytes', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (request, attempt) => {
        const response = await payAndComplete(request, attempt);
        if (response.payment !== undefined) response.payment.orderId = 'order-changed';
        return { payment: undefined };
      },
    });

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-1' } } });
    expect((await service.pay({ requestId })).bytes).toEqual(answer.bytes);
  });

  it('and answers with what can not be serialized commits nothing: bytes come before the commit', async () => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          const { payment } = await recordPayment(tx, request, attempt);
          return { payment: { ...payment, amountMinor: 1n << 70n } };
        }),
    });

    expect(toldText(await service.pay())).toBe('internal error');

    await expectNothingRecorded();
  });

  it('and is never chosen to commit is sent away to retry, with nothing done and the key free', async () => {
    const requestId = randomUUID();
    service.handle({ createPayment: payAndComplete });
    const failing = await failWrites(service.database, { table: 'payments', write: 'INSERT', sqlState: '40001' });
    try {
      const answer = await service.pay({ requestId });
      expect(answer).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'STORE_UNAVAILABLE' } });
      expect(toldText(answer)).not.toContain('internal');
      expect(await failing.tried()).toBe(4);
    } finally {
      await failing.remove();
    }
    await expectNothingRecorded();
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
  });

  it('and fails to commit for good is not run again', async () => {
    service.handle({ createPayment: payAndComplete });
    const refusal = { table: 'payments', write: 'INSERT', sqlState: '23514', atCommit: true } as const;
    const failing = await failWrites(service.database, refusal);
    try {
      expect(toldText(await service.pay())).toBe('internal error');
      expect(await failing.tried()).toBe(1);
    } finally {
      await failing.remove();
    }
    await expectNothingRecorded();
  });
});
