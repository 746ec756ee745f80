import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { changedDescriptorSet } from '../support/descriptor-set';
import { type AttemptService, payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';

describe('a listener that throws', () => {
  let service: AttemptService;

  beforeAll(async () => {
    const onEvent = ({ type }: { readonly type: string }): void => {
      throw new Error(`could not count ${type}`);
    };
    service = await startAttemptService({ onEvent });
  });

  afterAll(async () => {
    jest.restoreAllMocks();
    await service.stop();
  });

  it('breaks no call and leaves no claim behind', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    service.handle({ createPayment: payAndComplete });
    expect(await service.pay()).toMatchObject({ code: status.OK });
    expect(await service.database.count("idempotency_record WHERE state = 'completed'")).toBe(1);
    const warnings = warn.mock.calls.map(([message]) => message);
    expect(warnings).toEqual(expect.arrayContaining(['could not count admitted', 'could not count call']));
  });
});

describe('a handler that runs without a claim (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({
      descriptorSet: changedDescriptorSet({ CreatePayment: { level: 'IDEMPOTENT' } }),
    });
  });

  beforeEach(() => service.database.rows('TRUNCATE payments'));
  afterAll(() => service.stop());

  it('has what it committed told, though it throws or returns something else afterwards', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.complete((tx) => recordPayment(tx, request, attempt));
        throw new Error('too late');
      },
    });
    expect(await service.pay({ requestId: undefined })).toMatchObject({ code: status.OK });
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.complete((tx) => recordPayment(tx, request, attempt));
        return { payment: undefined };
      },
    });
    const answer = await service.pay({ requestId: undefined });
    const ids = await service.database.rows<{ id: string }>('SELECT payment_id::text AS id FROM payments');
    expect(ids.map(({ id }) => id)).toContain(answer.response?.payment.payment_id);
  });

  it('can commit nothing once it has returned', async () => {
    let late: Promise<unknown> = Promise.resolve();
    let returned: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => (returned = resolve));
    service.handle({
      createPayment: (request, attempt) => {
        late = answered.then(() => attempt.complete((tx) => recordPayment(tx, request, attempt)));
        late.catch(() => undefined);
        return Promise.resolve({ payment: undefined });
      },
    });
    await service.pay({ requestId: undefined });
    returned();
    await expect(late).rejects.toThrow('the handler has returned');
    expect(await service.database.count('payments')).toBe(0);
  });
});

describe('what a handler publishes inside complete (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  afterAll(() => service.stop());

  it('is told only if it commits', async () => {
    const line = () => service.events.find((event) => event.type === 'call');
    service.handle({
      createPayment: (request, attempt) => {
        attempt.publish({ order_id: request.orderId });
        return attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          attempt.publish({ payment_id: 'never was' });
          throw new StatusError(status.ABORTED, 'changed my mind');
        });
      },
    });
    await service.pay();
    expect(line()).toMatchObject({ published: { order_id: 'order-1' } });
    expect(line()).not.toHaveProperty('published.payment_id');
  });
});

describe('an optional key (design 4.1)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  afterAll(() => service.stop());

  it.each([{ 'request-id': '' }, { 'request-id-bin': Buffer.from(randomUUID()) }])(
    'that was sent in a form that is none is refused and not left out (%j)',
    async (metadata) => {
      let runs = 0;
      service.handle({
        updatePayment: () => {
          runs += 1;
          return Promise.resolve({ payment: undefined });
        },
      });
      const request = { payment_id: randomUUID(), etag: randomUUID() };
      const answer = await service.client.call({ method: 'UpdatePayment', request, metadata });
      expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT, error: { reason: 'REQUEST_ID_MISSING' } });
      expect(runs).toBe(0);
      await service.client.call({ method: 'UpdatePayment', request });
      expect(runs).toBe(1);
    },
  );
});
