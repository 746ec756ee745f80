import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type CreatePaymentResponse, Payment } from '../../src/gen/proto/payments/v1/payments';
import { PolicyError, type Rebuild, reject, StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  type PaymentHandlers,
  recordPayment,
  startAttemptService,
  toldText,
} from '../support/attempt-service';
import { paymentRequest } from '../support/payment-requests';
import { endLeases } from '../support/stored-record';

const LIMIT = 1_000;
const COMPACT = { recording: 'COMPACT', maxResponseBytes: LIMIT } as const;

describe('a method whose answers are rebuilt for every replay (design 4.8, recording COMPACT)', () => {
  let service: AttemptService;
  let runs: number;
  let rebuilds: { readonly resource: string; readonly scope: string; readonly trace: unknown }[];
  let rebuild: Rebuild<CreatePaymentResponse>;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: COMPACT,
      rebuildPayment: (resource, context) => {
        const { scope, metadata } = context;
        rebuilds.push({ resource, scope, trace: metadata.get('trace')[0] });
        return rebuild(resource, context);
      },
    });
  });

  beforeEach(async () => {
    runs = 0;
    rebuilds = [];
    rebuild = readPayment;
    service.handle(PUBLISHING);
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const PUBLISHING: PaymentHandlers = {
    createPayment: (request, attempt) =>
      attempt.complete(async (tx) => {
        runs += 1;
        const response = await recordPayment(tx, request, attempt);
        attempt.publish({ resource: `payments/${response.payment.paymentId}` });
        return response;
      }),
  };

  /** Shows the payment as it is now. */
  const readPayment: Rebuild<CreatePaymentResponse> = async (resource) => {
    const [row] = await service.database.rows<{ id: string; order: string }>(
      'SELECT payment_id::text AS id, order_id AS "order" FROM payments WHERE payment_id = $1',
      [resource.replace('payments/', '')],
    );
    if (row === undefined) throw new StatusError(status.NOT_FOUND, 'the payment is gone');
    return { payment: Payment.create({ paymentId: row.id, orderId: row.order }) };
  };

  const stored = () =>
    service.database.rows('SELECT state, status_code, response, answer_kept FROM idempotency_record');

  it('has the resource recorded and not the answer; a replay shows the newer state, marked, without a run', async () => {
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    const id = first.response?.payment.payment_id;
    expect(await stored()).toEqual([{ state: 'completed', status_code: 0, response: null, answer_kept: false }]);
    await service.database.rows(`UPDATE payments SET order_id = 'order-renamed'`);

    const replay = await service.pay({ requestId, metadata: { trace: 'seven' } });

    expect(replay).toMatchObject({ code: status.OK, response: { payment: { payment_id: id } } });
    expect(replay.response).toMatchObject({ payment: { order_id: 'order-renamed' } });
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(replay.trailers.get('idempotency-expires-at')).toEqual(first.trailers.get('idempotency-expires-at'));
    expect(rebuilds).toEqual([{ resource: `payments/${id}`, scope: 'account-1', trace: 'seven' }]);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'admitted', outcome: 'replayed', recordedCode: status.OK }),
    );
  });

  it('is a mismatch for another request, which nothing is rebuilt for (design 4.4)', async () => {
    const requestId = randomUUID();
    await service.pay({ requestId });
    const other = await service.pay({ requestId, request: paymentRequest({ order_id: 'order-2' }) });
    expect(other.error.reason).toBe('REQUEST_ID_REUSED');
    expect(rebuilds).toEqual([]);
  });

  it('tells a failed rebuild as INTERNAL, and the record stays for the next retry', async () => {
    const requestId = randomUUID();
    await service.pay({ requestId });
    rebuild = () => Promise.reject(new Error('db-7.internal is away'));

    expect(toldText(await service.pay({ requestId }))).toBe('internal error');

    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'a recorded answer could not be rebuilt' }),
    );
    expect(await stored()).toHaveLength(1);
    rebuild = readPayment;
    expect((await service.pay({ requestId })).code).toBe(status.OK);
    expect(runs).toBe(1);
  });

  it('tells a rebuild that refuses as an answer that was not kept: the request was carried out (case D5)', async () => {
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    await service.database.rows('TRUNCATE payments');
    const replay = await service.pay({ requestId });
    expect(replay.error).toMatchObject({ reason: 'RESPONSE_NOT_RECORDED' });
    expect(replay.error.metadata.get('resource')).toMatch(/^payments\//);
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'a recorded answer could not be rebuilt' }),
    );
    // Nothing was run, and whoever reads this can tell.
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(replay.trailers.get('idempotency-expires-at')).toEqual(first.trailers.get('idempotency-expires-at'));
    expect(await stored()).toHaveLength(1);
    expect(runs).toBe(1);
  });

  it('that publishes no resource can not complete: it is named, and everything is rolled back', async () => {
    service.handle({
      createPayment: (request, attempt) => attempt.complete((tx) => recordPayment(tx, request, attempt)),
    });

    expect(toldText(await service.pay())).toBe('internal error');

    const fault = service.events.find((event) => event.type === 'fault');
    expect(String(fault?.error)).toContain('recording COMPACT rebuilds answers from their resource: publish it');
    expect(await service.database.count('payments')).toBe(0);
    expect(await stored()).toEqual([]);
  });

  it('may publish the resource before it completes', async () => {
    service.handle({
      createPayment: (request, attempt) => {
        attempt.publish({ resource: 'payments/early' });
        return attempt.complete((tx) => recordPayment(tx, request, attempt));
      },
    });
    rebuild = () => Promise.resolve({ payment: undefined });
    const requestId = randomUUID();
    await service.pay({ requestId });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(rebuilds).toMatchObject([{ resource: 'payments/early' }]);
  });

  it('has its rejections recorded in full, resource or not: there is nothing to rebuild them from', async () => {
    service.handle({
      createPayment: (_, attempt) =>
        attempt.complete(() => Promise.resolve(reject(new StatusError(status.FAILED_PRECONDITION, 'declined')))),
    });
    const requestId = randomUUID();
    const answers = [await service.pay({ requestId }), await service.pay({ requestId })];
    for (const answer of answers) {
      expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, details: 'declined' });
    }
    expect(answers[1]?.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(rebuilds).toEqual([]);
  });

  it('has a rejection that is too large refused to its retries: nothing is rebuilt in its place', async () => {
    service.handle({
      createPayment: (_, attempt) =>
        attempt.complete(() => {
          attempt.publish({ resource: 'payments/declined' });
          return Promise.resolve(reject(new StatusError(status.FAILED_PRECONDITION, 'x'.repeat(LIMIT + 1))));
        }),
    });
    const requestId = randomUUID();
    expect((await service.pay({ requestId })).code).toBe(status.FAILED_PRECONDITION);

    const retry = await service.pay({ requestId });

    expect(retry).toMatchObject({ code: status.ALREADY_EXISTS, error: { reason: 'RESPONSE_NOT_RECORDED' } });
    expect(retry.error.metadata.get('resource')).toBe('payments/declined');
    expect(rebuilds).toEqual([]);
  });

  /** Pays, as an attempt that is overtaken by another one of the same request before it completes. */
  const payOvertaken = () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async (request, attempt) => {
        const isFirst = (runs += 1) === 1;
        if (isFirst) {
          await endLeases(service.database);
          await service.pay({ requestId });
        }
        return attempt.complete(async (tx) => {
          const response = await recordPayment(tx, request, attempt);
          attempt.publish({ resource: `payments/${response.payment.paymentId}` });
          return response;
        });
      },
    });

    return service.pay({ requestId });
  };

  it('gives an overtaken attempt the rebuilt answer of the one that overtook it', async () => {
    const zombie = await payOvertaken();

    expect(zombie.trailers.get('idempotent-replayed')).toEqual(['true']);
    const [row] = await service.database.rows<{ id: string }>('SELECT payment_id::text AS id FROM payments');
    expect(zombie.response?.payment.payment_id).toBe(row?.id);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('tells a rebuild that asks to come again as that', async () => {
    const requestId = randomUUID();
    await service.pay({ requestId });
    rebuild = () => Promise.reject(new StatusError(status.UNAVAILABLE, 'the archive is away'));
    expect(await service.pay({ requestId })).toMatchObject({
      code: status.UNAVAILABLE,
      details: 'the archive is away',
    });
  });

  it('tells an overtaken attempt of a failed rebuild as any other', async () => {
    rebuild = () => Promise.reject(new StatusError(status.NOT_FOUND, 'the payment is gone'));
    expect((await payOvertaken()).error).toMatchObject({ reason: 'RESPONSE_NOT_RECORDED' });

    await service.database.rows('TRUNCATE payments, idempotency_record');
    runs = 0;
    rebuild = () => Promise.reject(new Error('db-7.internal is away'));
    expect(toldText(await payOvertaken())).toBe('internal error');
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'a recorded answer could not be rebuilt' }),
    );
  });
});

describe('a handler without rebuild, of a method that records COMPACT', () => {
  it('is refused at the start, by the name of its method', async () => {
    const starting = startAttemptService({ policy: COMPACT });
    await expect(starting).rejects.toThrow(PolicyError);
    await expect(starting).rejects.toThrow(
      '/payments.v1.PaymentsService/CreatePayment: expected { handle, rebuild }, since with recording COMPACT',
    );
  });
});
