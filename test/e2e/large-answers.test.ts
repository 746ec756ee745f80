import { randomUUID } from 'node:crypto';
import { credentials, Metadata, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import {
  createPromiseClient,
  loadPolicies,
  reject,
  RequestsServiceService,
  RequestState,
  StatusError,
} from '../../src/idempotency/index';
import { answerOfSize } from '../support/answer-bytes';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';
import { paymentRequest } from '../support/payment-requests';
import { endLeases } from '../support/stored-record';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';

const METHOD = '/payments.v1.PaymentsService/CreatePayment';
const LIMIT = 10_000;
/** More than any record of these tests takes without an answer in it, bytes. */
const SMALL_ROW = 600;

describe('an answer and its limit (design 4.8, case H1)', () => {
  let service: AttemptService;
  let client: StockClient;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService({ policy: { maxResponseBytes: LIMIT }, withRequests: true });
    client = createStockClient(service.port, { 'grpc.max_receive_message_length': -1 });
  });

  beforeEach(async () => {
    runs = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(async () => {
    client.close();
    await service.stop();
  });

  const answerWith = (size: number, resource?: string): void => {
    const answer = answerOfSize(size);
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          await recordPayment(tx, request, attempt);
          if (resource !== undefined) attempt.publish({ resource });
          return answer;
        }),
    });
  };

  const pay = (requestId: string): Promise<StockAnswer> =>
    client.call({ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId });
  const payThrice = async (requestId: string): Promise<readonly StockAnswer[]> => [
    await pay(requestId),
    await pay(requestId),
    await pay(requestId),
  ];
  const rowSize = async (): Promise<number> =>
    (
      await service.database.rows<{ size: number }>('SELECT pg_column_size(r.*) AS size FROM idempotency_record AS r')
    )[0]?.size ?? 0;
  const events = (type: string) => service.events.filter((event) => event.type === type);

  it.each([LIMIT - 1, LIMIT])('of %d bytes is recorded, and replayed byte for byte', async (size) => {
    answerWith(size);
    const requestId = randomUUID();
    const first = await pay(requestId);

    expect(first.code).toBe(status.OK);
    expect(first.bytes).toHaveLength(size);
    for (const retry of await payThrice(requestId)) {
      expect(retry.bytes).toEqual(first.bytes);
      expect(retry.trailers.get('idempotent-replayed')).toEqual(['true']);
    }
    expect(events('too_large')).toEqual([]);
    expect(events('recorded')).toEqual([expect.objectContaining({ responseBytes: size })]);
    expect(runs).toBe(1);
  });

  it.each([LIMIT + 1, 5 * 1024 * 1024])(
    'of %d bytes reaches its caller whole, and no retry: each is told what was made, and none runs',
    async (size) => {
      answerWith(size, 'payments/large');
      const requestId = randomUUID();
      const first = await pay(requestId);

      expect(first.code).toBe(status.OK);
      expect(first.bytes).toHaveLength(size);
      expect(first.trailers.get('idempotent-replayed')).toEqual([]);
      const [expiresAt] = first.trailers.get('idempotency-expires-at');
      expect(expiresAt).toBeDefined();
      for (const retry of await payThrice(requestId)) {
        expect(retry).toMatchObject({
          ...{ code: status.ALREADY_EXISTS, bytes: undefined, trailersOnly: true },
          error: { reason: 'RESPONSE_NOT_RECORDED', domain: 'idempotency.v1' },
        });
        expect(retry.error.retryDelayMs).toBeUndefined();
        expect(retry.error.metadata.get('resource')).toBe('payments/large');
        expect(retry.trailers.get('idempotent-replayed')).toEqual(['true']);
        expect(retry.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
        expect(retry.trailers.get('idempotency-expires-at')).toEqual([expiresAt]);
      }
      expect(runs).toBe(1);
      expect(await service.database.count('payments')).toBe(1);
      expect(events('too_large')).toEqual([expect.objectContaining({ responseBytes: size, limit: LIMIT })]);
      expect(await rowSize()).toBeLessThan(SMALL_ROW);
    },
  );

  it('that is too large, without a published resource, is refused without one', async () => {
    answerWith(LIMIT + 1);
    const requestId = randomUUID();
    await pay(requestId);
    const retry = await pay(requestId);
    expect(retry.error.reason).toBe('RESPONSE_NOT_RECORDED');
    expect(retry.error.metadata.has('resource')).toBe(false);
  });

  it('that is too large is a mismatch all the same for another request (design 4.4)', async () => {
    answerWith(LIMIT + 1, 'payments/large');
    const requestId = randomUUID();
    await pay(requestId);
    const request = paymentRequest({ order_id: 'order-2' });
    const other = await client.call({ method: 'CreatePayment', request, requestId });
    expect(other.error.reason).toBe('REQUEST_ID_REUSED');
    expect(other.error.metadata.has('resource')).toBe(false);
  });

  it('that is too large is refused to an overtaken attempt too, whose own is rolled back', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (request, attempt) => {
        const isFirst = (runs += 1) === 1;
        if (isFirst) {
          await endLeases(service.database);
          await service.pay({ requestId });
        }
        return attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          attempt.publish({ resource: isFirst ? 'payments/late' : 'payments/heir' });
          return answerOfSize(LIMIT + 1);
        });
      },
    });

    const zombie = await service.pay({ requestId });

    expect(zombie).toMatchObject({ code: status.ALREADY_EXISTS, error: { reason: 'RESPONSE_NOT_RECORDED' } });
    expect(zombie.error.metadata.get('resource')).toBe('payments/heir');
    expect(await service.database.count('payments')).toBe(1);
  });

  test.each<[string, () => StatusError, () => Metadata | undefined]>([
    ['text', () => new StatusError(status.FAILED_PRECONDITION, 'x'.repeat(LIMIT + 1)), () => undefined],
    [
      'details',
      () =>
        new StatusError(status.FAILED_PRECONDITION, 'declined', [
          { field: 'card', description: 'x'.repeat(LIMIT + 1) },
        ]),
      () => undefined,
    ],
    [
      'trailers',
      () => new StatusError(status.FAILED_PRECONDITION, 'declined'),
      () => {
        const trailers = new Metadata();
        trailers.set('receipt-bin', Buffer.alloc(LIMIT + 1, 7));
        return trailers;
      },
    ],
  ])('that is a rejection with too much %s reaches its caller whole, and no retry', async (_, error, trailers) => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          await recordPayment(tx, request, attempt);
          attempt.publish({ resource: 'payments/declined' });
          return reject(error(), trailers());
        }),
    });
    const requestId = randomUUID();
    const first = await pay(requestId);

    expect(first).toMatchObject({ code: status.FAILED_PRECONDITION, details: error().details });
    expect(first.trailers.get('receipt-bin')).toEqual(trailers()?.get('receipt-bin') ?? []);
    for (const retry of await payThrice(requestId)) {
      expect(retry).toMatchObject({ code: status.ALREADY_EXISTS, error: { reason: 'RESPONSE_NOT_RECORDED' } });
      expect(retry.error.metadata.get('resource')).toBe('payments/declined');
    }
    expect(runs).toBe(1);
    expect(await rowSize()).toBeLessThan(SMALL_ROW);
  });

  it('that is too large can be asked after: GetRequest says completed, with what was made', async () => {
    answerWith(LIMIT + 1, 'payments/large');
    const requestId = randomUUID();
    await pay(requestId);
    const requests = createPromiseClient(RequestsServiceService, `127.0.0.1:${service.port}`, {
      credentials: credentials.createInsecure(),
      policies: loadPolicies(descriptorSet),
    });
    try {
      expect(await requests.getRequest({ method: METHOD, requestId })).toMatchObject({
        ...{ state: RequestState.REQUEST_STATE_COMPLETED, resource: 'payments/large', statusCode: status.OK },
      });
    } finally {
      requests.close();
    }
  });
});
