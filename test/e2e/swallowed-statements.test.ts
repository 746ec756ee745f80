import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Prisma } from '../../src/gen/prisma/client';
import {
  type AttemptService,
  payAndComplete,
  type PaymentAttempt,
  recordPayment,
  startAttemptService,
} from '../support/attempt-service';
import type { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { deferred } from '../support/deferred';

type Tx = Prisma.TransactionClient;
type Work = (tx: Tx, request: CreatePaymentRequest, attempt: PaymentAttempt) => Promise<unknown>;

const PAYMENT_ID = '00000000-0000-4000-8000-000000000001';
const INSERT = `
  INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state, authorization_id, etag)
  VALUES ('${PAYMENT_ID}', 'account-1', 'order-9', 9, 'EUR', 'tok', 'authorized', 'a', gen_random_uuid())`;

const row = (paymentId: string = randomUUID()) => ({
  ...{ paymentId, scope: 'account-1', orderId: 'order-9', amountMinor: 9n, currency: 'EUR', paymentMethod: 'tok' },
  ...{ state: 'authorized', authorizationId: 'a', etag: randomUUID() },
});

/** Runs on its own and tells nobody how it ended. */
async function keepQuiet(work: () => Promise<unknown>): Promise<void> {
  await work().catch(() => undefined);
}

describe('the transaction of a completion (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    await service.database.rows(INSERT);
  });

  afterAll(() => service.stop());

  /** Works, then pays as asked: whatever the work left behind decides whether there is a payment. */
  const handleWith = (work: Work): void =>
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          await work(tx, request, attempt);
          return recordPayment(tx, request, attempt).catch(() => ({ payment: undefined }));
        }),
    });

  const swallowed: readonly [string, Work][] = [
    ['a unique violation of a model', (tx) => tx.payment.create({ data: row(PAYMENT_ID) }).catch(() => undefined)],
    ['a failed $executeRawUnsafe', (tx) => tx.$executeRawUnsafe(INSERT).catch(() => undefined)],
    ['a failed $queryRaw', (tx) => tx.$queryRaw`SELECT 1 / (SELECT 0)`.catch(() => undefined)],
    [
      'one failure of many in Promise.allSettled',
      (tx) => Promise.allSettled([tx.payment.create({ data: row() }), tx.payment.create({ data: row(PAYMENT_ID) })]),
    ],
  ];

  it.each(swallowed)('whose function swallowed %s is not told as success, and leaves nothing', async (_, work) => {
    handleWith(work);

    const answer = await service.pay();

    expect(answer).toMatchObject({ code: status.INTERNAL, details: 'internal error' });
    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.count('idempotency_record')).toBe(0);
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'released' }));
  });

  const unawaited: readonly [string, string, Work][] = [
    ['a write that was never run', 'payment.create', async (tx) => void tx.payment.create({ data: row() })],
    [
      'a failing write that was never run',
      'payment.create',
      async (tx) => void tx.payment.create({ data: row(PAYMENT_ID) }),
    ],
    ['a raw statement that was never run', '$executeRaw', async (tx) => void tx.$executeRaw`SELECT 1`],
    ['a raw text that was never run', '$queryRawUnsafe', async (tx) => void tx.$queryRawUnsafe('SELECT 1')],
    [
      'a write by a model kept in a variable',
      'payment.create',
      async ({ payment }) => void payment.create({ data: row() }),
    ],
  ];

  it.each(unawaited)('whose function left %s behind is not told as success', async (_, operation, work) => {
    handleWith(work);

    const answer = await service.pay();

    expect(answer).toMatchObject({ code: status.INTERNAL, details: 'internal error' });
    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.count('idempotency_record')).toBe(0);
    const [fault] = service.events.filter((event) => event.type === 'fault');
    expect(String(fault?.error)).toContain(`not awaited inside the transaction: ${operation}`);
  });

  const started: readonly [string, Work][] = [
    ['a succeeding write', async (tx) => void tx.payment.create({ data: row() }).then(() => undefined)],
    ['a failing write', async (tx) => void tx.payment.create({ data: row(PAYMENT_ID) }).then(() => undefined)],
    ['a failing write whose error is caught', async (tx) => void tx.$executeRawUnsafe(INSERT).catch(() => undefined)],
    ['a write in a function', async (tx) => void keepQuiet(async () => await tx.payment.create({ data: row() }))],
  ];

  it.each(started)('whose function started %s and did not wait for it is not told as success', async (_, leave) => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          const response = await recordPayment(tx, request, attempt);
          await leave(tx, request, attempt);
          return response;
        }),
    });

    const answer = await service.pay();

    expect(answer).toMatchObject({ code: status.INTERNAL, details: 'internal error' });
    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('can no longer be written with once its function has returned', async () => {
    let kept: Tx | undefined;
    let keptModel: Tx['payment'] | undefined;
    let late: readonly unknown[] = [];
    service.handle({
      createPayment: async (request, attempt) => {
        const response = await attempt.complete((tx) => {
          [kept, keptModel] = [tx, tx.payment];
          return recordPayment(tx, request, attempt);
        });
        const attempts = [() => kept?.payment.create({ data: row() }), () => keptModel?.create({ data: row() })];
        late = await Promise.all(attempts.map((write) => Promise.resolve().then(write).catch(String)));
        return response;
      },
    });

    expect(await service.pay()).toMatchObject({ code: status.OK });

    const refused = `Error: payment.create after the transaction's function had returned; it was not run`;
    expect(late).toEqual([refused, refused]);
    expect(await service.database.count('payments')).toBe(2);
  });

  it('can no longer be written with once its function has thrown: not into the transaction of another call either', async () => {
    let left: Tx | undefined;
    handleWith((tx) => {
      left = tx;
      return Promise.reject(new Error('thrown'));
    });
    expect((await service.pay()).code).not.toBe(status.OK);

    let late: unknown;
    handleWith(async (tx) => {
      await tx.$executeRaw`SELECT 1`;
      late = await Promise.resolve()
        .then(() => left?.payment.create({ data: row() }))
        .catch((error: unknown) => error);
    });
    expect((await service.pay()).code).toBe(status.OK);

    expect(late).toMatchObject({ message: expect.stringContaining('had returned') as string });
    expect(await service.database.count('payments')).toBe(2);
  });

  it('rejects what a timer starts too late, instead of throwing where nobody can catch it', async () => {
    const late = deferred();
    let thrown: unknown;
    handleWith((tx) => {
      setImmediate(() => {
        try {
          tx.$executeRaw`SELECT 1`.catch(() => late.resolve());
        } catch (error) {
          thrown = error;
          late.resolve();
        }
      });
      return Promise.reject(new Error('thrown'));
    });
    await service.pay();
    await late.promise;
    expect(thrown).toBeUndefined();
  });

  it('does not run a statement that was made inside and is awaited outside', async () => {
    let late: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        let made: PromiseLike<unknown> | undefined;
        try {
          return await attempt.complete((tx) => {
            made = tx.payment.create({ data: row() });
            return recordPayment(tx, request, attempt);
          });
        } finally {
          late = await Promise.resolve(made).catch(String);
        }
      },
    });

    expect(await service.pay()).toMatchObject({ code: status.INTERNAL });

    expect(late).toContain('it was not run');
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each([
    ...['COMMIT', 'commit', 'COMMIT AND CHAIN', 'END', 'ROLLBACK', 'rollback', 'ROLLBACK AND CHAIN', 'ABORT'],
    ...['BEGIN', 'START TRANSACTION', "PREPARE TRANSACTION 'prepared'", '/* sent with COMMIT */ COMMIT', '; COMMIT'],
  ])('can neither be ended nor begun by its function: %s', async (text) => {
    const requestId = randomUUID();
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          const response = await recordPayment(tx, request, attempt);
          await tx.$executeRawUnsafe(text).catch(() => undefined);
          return response;
        }),
    });

    expect(await service.pay({ requestId })).toMatchObject({ code: status.INTERNAL });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.INTERNAL });

    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.count('idempotency_record')).toBe(0);
    const faults = service.events.filter((event) => event.type === 'fault').map(({ error }) => String(error));
    expect(faults).toEqual(Array(2).fill(expect.stringContaining('is not offered inside complete')));
  });

  it('takes statements in any form, as long as each is awaited', async () => {
    handleWith(async (tx) => {
      const { payment } = tx;
      await Promise.all([payment.create({ data: row() }), payment.create({ data: row() }), tx.$executeRaw`SELECT 1`]);
      const read = payment.findUnique({ where: { paymentId: PAYMENT_ID } });
      expect((await read)?.orderId).toBe('order-9');
      await tx.payment
        .update({ where: { paymentId: PAYMENT_ID }, data: { orderId: 'order-10' } })
        .finally(() => undefined);
      expect(await tx.$queryRaw`SELECT order_id FROM payments WHERE order_id = 'order-10'`).toHaveLength(1);
      expect(await tx.payment.count()).toBe(3);
    });

    const answer = await service.pay();

    expect(service.events.filter(({ type }) => type === 'fault')).toEqual([]);
    expect(answer).toMatchObject({ code: status.OK });
    expect(await service.database.count('payments')).toBe(4);
  });

  it('is rolled back for what the database alone refuses, and a corrected call may use the key', async () => {
    const requestId = randomUUID();
    handleWith((tx) => tx.payment.create({ data: { ...row(), state: 'unheard of' } }));
    expect(await service.pay({ requestId })).toMatchObject({ code: status.INTERNAL });

    service.handle({ createPayment: payAndComplete });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(await service.database.count('payments')).toBe(2);
  });
});
