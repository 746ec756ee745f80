import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Prisma } from '../../src/gen/prisma/client';
import { CompletionFailedError, type IdempotencyStore } from '../../src/idempotency/index';
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

describe('a commit whose outcome is not known (design 4.8)', () => {
  let service: AttemptService;
  let transaction: Store['transaction'] | undefined;
  let settle: Store['settle'] | undefined;
  let inner: Store;

  beforeAll(async () => {
    service = await startAttemptService({
      descriptorSet: changedDescriptorSet({ CancelPayment: { level: 'IDEMPOTENT' } }),
      wrapStore: (store) => {
        inner = store;
        return {
          ...store,
          transaction: (work, limits) => (transaction ?? store.transaction)(work, limits),
          settle: (...asked) => (settle ?? store.settle)(...asked),
        };
      },
    });
  });

  beforeEach(async () => {
    transaction = undefined;
    settle = undefined;
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

  const settled = () => service.events.flatMap((event) => (event.type === 'settled' ? [event.result] : []));

  it.each(losses)('after %s is settled where it was committed: its caller is told the answer', async (_, error) => {
    const requestId = randomUUID();
    transaction = commitThenLose(error);

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-1' } } });
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(answer.trailers.get('idempotency-expires-at')).toHaveLength(1);
    expect(settled()).toEqual(['committed']);
    expect(service.events).toContainEqual(
      expect.objectContaining({
        ...{ type: 'fault', what: 'the outcome of a commit is unknown and is being settled', error },
      }),
    );
    const retry = await service.pay({ requestId });
    expect(retry.bytes).toEqual(answer.bytes);
    expect(retry.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each(losses)('after %s is settled where it was not: the key is free, and the retry pays', async (_, error) => {
    const requestId = randomUUID();
    transaction = loseThenRollBack(error);

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
    });
    expect(toldText(answer)).not.toContain(error.message);
    expect(settled()).toEqual(['never_committed']);
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'released' }));
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
    transaction = undefined;
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each([
    ['committed', true],
    ['not committed', false],
  ])('that can not be settled in time is UNAVAILABLE, and left to the lease: %s', async (_, isCommitted) => {
    const requestId = randomUUID();
    const error = new Error('the store is away');
    settle = () => Promise.resolve({ kind: 'unsettled', error });
    transaction = (isCommitted ? commitThenLose : loseThenRollBack)(connectionTerminated());

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
    });
    expect(settled()).toEqual(['unsettled']);
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'the outcome of a commit is unknown', error }),
    );
    expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    transaction = undefined;
    if (!isCommitted) {
      expect(await service.pay({ requestId })).toMatchObject({ error: { reason: 'REQUEST_IN_PROGRESS' } });
      await service.database.rows('UPDATE idempotency_record SET lease_until = now()');
    }
    const retry = await service.pay({ requestId });
    expect(retry.code).toBe(status.OK);
    expect(retry.trailers.get('idempotent-replayed')).toEqual(isCommitted ? ['true'] : []);
    expect(await service.database.count('payments')).toBe(1);
  });

  const TAKEN = 'owner_token = gen_random_uuid(), attempt = 2';
  const COMPLETED = `state = 'completed', completed_at = now(), status_code = 0, response = '\\x'`;

  const lost: readonly [string, string, object][] = [
    ['runs elsewhere', `UPDATE idempotency_record SET ${TAKEN}`, { error: { reason: 'CLAIM_LOST' } }],
    ['is gone', 'DELETE FROM idempotency_record', { error: { reason: 'CLAIM_LOST' } }],
    [
      'was completed elsewhere',
      `UPDATE idempotency_record SET ${TAKEN}, ${COMPLETED}`,
      { code: status.OK, bytes: Buffer.alloc(0) },
    ],
    [
      'is of another request',
      `UPDATE idempotency_record SET ${TAKEN}, fingerprint = '\\x0102', ${COMPLETED}`,
      { error: { reason: 'REQUEST_ID_REUSED' }, bytes: undefined },
    ],
  ];

  it.each(lost)('and whose key %s meanwhile tells what there is now', async (_, change, expected) => {
    transaction = loseThenRollBack(connectionTerminated());
    settle = async (...asked) => {
      await service.database.rows(change);
      return inner.settle(...asked);
    };

    expect(await service.pay()).toMatchObject(expected);

    expect(settled()).toEqual(['lost']);
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'fenced' }));
    expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    expect(await service.database.count('payments')).toBe(0);
  });

  it.each([
    ['was not committed', 'the commit did not happen'],
    ['can not be settled', 'the outcome of the commit is unknown'],
  ])('and %s is not made a success by a handler that answers all the same', async (_, told) => {
    transaction = loseThenRollBack(connectionTerminated());
    if (told.includes('unknown')) settle = () => Promise.resolve({ kind: 'unsettled', error: undefined });
    let thrown: unknown;
    service.handle({
      createPayment: (request, attempt) =>
        payAndComplete(request, attempt).catch((error: unknown) => {
          thrown = error;
          return { payment: undefined };
        }),
    });

    expect(await service.pay()).toMatchObject({ error: { reason: 'STORE_UNAVAILABLE' } });

    expect(thrown).toBeInstanceOf(CompletionFailedError);
    expect(String(thrown)).toContain(told);
    expect(await service.database.count('payments')).toBe(0);
  });

  it.each([
    ['was not committed', undefined],
    ['can not be settled', 'unsettled'],
  ])('and %s is not run again by a handler that tries: it has ended', async (_, unsettled) => {
    transaction = (unsettled === undefined ? loseThenRollBack : commitThenLose)(connectionTerminated());
    if (unsettled !== undefined) settle = () => Promise.resolve({ kind: 'unsettled', error: undefined });
    let runs = 0;
    service.handle({
      createPayment: (request, attempt) => {
        const pay = () =>
          attempt.complete((tx) => {
            runs += 1;
            return recordPayment(tx, request, attempt);
          });
        return pay().catch(pay);
      },
    });

    expect(await service.pay()).toMatchObject({ error: { reason: 'STORE_UNAVAILABLE' } });

    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(unsettled === undefined ? 0 : 1);
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
