import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Prisma } from '../../src/gen/prisma/client';
import type { IdempotencyStore } from '../../src/idempotency/index';
import { changedDescriptorSet } from '../support/descriptor-set';
import {
  type AttemptService,
  payAndComplete,
  recordPayment,
  startAttemptService,
  toldText,
} from '../support/attempt-service';
import {
  commitError,
  connectionTerminated,
  postgresCause,
  statementError,
  transactionError,
} from '../support/database-errors';
import { paymentRequest } from '../support/payment-requests';

type Store = IdempotencyStore<Prisma.TransactionClient>;

describe('a commit whose outcome is not known', () => {
  let service: AttemptService;
  let transaction: Store['transaction'] | undefined;
  let inner: Store;

  beforeAll(async () => {
    service = await startAttemptService({
      descriptorSet: changedDescriptorSet({ CancelPayment: { level: 'IDEMPOTENT' } }),
      wrapStore: (store) => {
        inner = store;
        return { ...store, transaction: (work, limits) => (transaction ?? store.transaction)(work, limits) };
      },
    });
  });

  beforeEach(async () => {
    transaction = undefined;
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({ createPayment: payAndComplete });
  });

  afterAll(() => service.stop());

  /** COMMIT is carried out, and its answer is lost. */
  const commitThenLose =
    (error: Error): Store['transaction'] =>
    async (work, limits) => {
      await inner.transaction(work, limits);
      throw error;
    };

  /** The connection breaks when everything was said but COMMIT. */
  const loseThenRollBack =
    (error: Error): Store['transaction'] =>
    async (work, limits) =>
      inner.transaction(async (tx) => {
        await work(tx);
        throw error;
      }, limits);

  const losses: readonly [string, Error][] = [
    ['an ended connection', connectionTerminated()],
    ['57P01 at COMMIT', commitError(postgresCause('57P01'))],
    ['08006 at COMMIT', commitError(postgresCause('08006'))],
    ['an error that nobody knows', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })],
  ];

  it.each(losses)('after %s is UNAVAILABLE though it was committed, and the retry is told', async (_, error) => {
    const requestId = randomUUID();
    transaction = commitThenLose(error);

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
    });
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'the outcome of a commit is unknown', error }),
    );
    expect(toldText(answer)).not.toContain(error.message);
    const retry = await service.pay({ requestId });
    expect(retry).toMatchObject({ code: status.OK });
    expect(retry.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each(losses)('after %s is UNAVAILABLE where it was not committed, and the key stays claimed', async (_, error) => {
    const requestId = randomUUID();
    transaction = loseThenRollBack(error);

    expect(await service.pay({ requestId })).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE' },
    });

    expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.rows('SELECT state FROM idempotency_record')).toEqual([{ state: 'claimed' }]);
    expect(await service.pay({ requestId })).toMatchObject({ error: { reason: 'REQUEST_IN_PROGRESS' } });
  });

  it('is not made a success by a handler that answers all the same', async () => {
    transaction = loseThenRollBack(connectionTerminated());
    service.handle({
      createPayment: (request, attempt) => payAndComplete(request, attempt).catch(() => ({ payment: undefined })),
    });

    expect(await service.pay()).toMatchObject({ error: { reason: 'STORE_UNAVAILABLE' } });
    expect(await service.database.rows('SELECT state FROM idempotency_record')).toEqual([{ state: 'claimed' }]);
  });

  it('is not run again by a handler that tries: its first commit may stand', async () => {
    transaction = commitThenLose(connectionTerminated());
    service.handle({
      createPayment: (request, attempt) =>
        payAndComplete(request, attempt).catch(() => payAndComplete(request, attempt)),
    });

    expect(await service.pay()).toMatchObject({ error: { reason: 'STORE_UNAVAILABLE' } });
    expect(await service.database.count('payments')).toBe(1);
  });

  it('is UNAVAILABLE on a call without a claim too, whose level says that it may be retried', async () => {
    transaction = commitThenLose(connectionTerminated());
    service.handle({
      cancelPayment: (_, attempt) =>
        attempt.complete(async (tx) => {
          await recordPayment(tx, { ...REQUEST, orderId: 'order-1' }, attempt);
          return { payment: undefined };
        }),
    });

    expect(await service.client.call({ method: 'CancelPayment', request: {} })).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE' },
    });
    expect(await service.database.count('payments')).toBe(1);
  });

  const rollbacks: readonly [string, Error, status][] = [
    ['a deferred constraint', commitError(postgresCause('23514')), status.INTERNAL],
    ['an aborted transaction', statementError(postgresCause('25P02')), status.INTERNAL],
    ['a transaction out of time', transactionError('P2028', { operation: 'commit', timeout: 9 }), status.UNAVAILABLE],
    [
      'a connection that was dead before',
      new Error('Client has encountered a connection error and is not queryable'),
      status.UNAVAILABLE,
    ],
  ];

  it.each(rollbacks)('is known after %s: it did not happen, and the key is free', async (_, error, code) => {
    const requestId = randomUUID();
    transaction = loseThenRollBack(error);

    expect(await service.pay({ requestId })).toMatchObject({ code });

    expect(service.events).toContainEqual(expect.objectContaining({ type: 'released' }));
    expect(await service.database.count('idempotency_record')).toBe(0);
    transaction = undefined;
    expect(await service.pay({ requestId, request: paymentRequest({ order_id: 'order-2' }) })).toMatchObject({
      code: status.OK,
    });
    expect(await service.database.count('payments')).toBe(1);
  });

  it('of a database that broke before the function had returned did not happen, and the key is free', async () => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          throw connectionTerminated();
        }),
    });

    expect(await service.pay()).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'STORE_UNAVAILABLE' } });
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('of a transaction that never ran its function is a fault and no success', async () => {
    transaction = () => Promise.resolve(undefined as never);

    expect(toldText(await service.pay())).toBe('internal error');
    expect(await service.database.count('idempotency_record')).toBe(0);
  });
});

const REQUEST = {
  ...{ orderId: 'order-1', amountMinor: 1n, currency: 'EUR', paymentMethod: 'tok', metadata: {} },
  clientSentAt: undefined,
};
