import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Prisma } from '../../src/gen/prisma/client';
import type { IsolationLevel } from '../../src/idempotency/store/store';
import {
  type AttemptService,
  payAndComplete,
  recordPayment,
  startAttemptService,
  toldText,
} from '../support/attempt-service';
import { failWrites, type FailingWrites } from '../support/failing-writes';

type Tx = Prisma.TransactionClient;

const row = (orderId: string) => ({
  ...{ scope: 'account-1', orderId, amountMinor: 9n, currency: 'EUR', paymentMethod: 'tok', state: 'authorized' },
  ...{ paymentId: randomUUID(), authorizationId: 'a', etag: randomUUID() },
});

const WRITES: readonly [string, (tx: Tx) => Promise<unknown>][] = [
  ['a model', (tx) => tx.payment.create({ data: row('order-1') })],
  [
    'a raw query',
    (tx) => tx.$executeRaw`
      INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state, authorization_id, etag)
      VALUES (gen_random_uuid(), 'account-1', 'order-1', 9, 'EUR', 'tok', 'authorized', 'a', gen_random_uuid())`,
  ],
];

const STATES = ['40001', '40P01'];

describe('a transaction that Postgres chooses to be run again (design 4.8, case K4)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({ createPayment: payAndComplete });
  });

  afterAll(() => service.stop());

  const whileFailing = async (writes: FailingWrites, work: () => Promise<void>): Promise<number> => {
    const failing = await failWrites(service.database, writes);
    try {
      await work();
      return await failing.tried();
    } finally {
      await failing.remove();
    }
  };

  const cases = WRITES.flatMap(([name, write]) => STATES.map((sqlState) => ({ name, write, sqlState })));

  it.each(cases)('is, when $name meets $sqlState three times', async ({ write, sqlState }) => {
    let runs = 0;
    service.handle({
      createPayment: (_, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          await write(tx);
          return { payment: undefined };
        }),
    });

    await whileFailing({ table: 'payments', write: 'INSERT', sqlState, times: 3 }, async () => {
      expect(await service.pay()).toMatchObject({ code: status.OK });
    });

    expect(runs).toBe(4);
    expect(await service.database.count('payments')).toBe(1);
  });

  const places: readonly [string, Omit<FailingWrites, 'sqlState'>][] = [
    ['its fence', { table: 'idempotency_record', write: 'UPDATE' }],
    ['its COMMIT', { table: 'idempotency_record', write: 'UPDATE', atCommit: true }],
    ['the claim before it', { table: 'idempotency_record', write: 'INSERT' }],
    ['the COMMIT of the claim before it', { table: 'idempotency_record', write: 'INSERT', atCommit: true }],
  ];
  const placed = places.flatMap(([name, place]) => STATES.map((sqlState) => ({ name, place, sqlState })));

  it.each(placed)('is, when $name meets $sqlState three times', async ({ place, sqlState }) => {
    const tried = await whileFailing({ ...place, sqlState, times: 3 }, async () => {
      expect(await service.pay()).toMatchObject({ code: status.OK });
    });

    expect(tried).toBe(4);
    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.rows('SELECT state, attempt FROM idempotency_record')).toEqual([
      { state: 'completed', attempt: 1 },
    ]);
  });

  it.each(placed)(
    'is sent away when $name meets $sqlState for ever, and the key is free',
    async ({ place, sqlState }) => {
      const requestId = randomUUID();
      await whileFailing({ ...place, sqlState }, async () => {
        const answer = await service.pay({ requestId });
        expect(answer).toMatchObject({
          code: status.UNAVAILABLE,
          error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
        });
        expect(toldText(answer)).not.toMatch(/internal|made to fail/);
      });

      expect(await service.database.count('payments')).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);
      expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
      expect(await service.database.count('payments')).toBe(1);
    },
  );

  const levels: readonly [string, IsolationLevel | undefined][] = [
    ['read committed', undefined],
    ['read uncommitted', 'ReadUncommitted'],
    ['read committed', 'ReadCommitted'],
    ['repeatable read', 'RepeatableRead'],
    ['serializable', 'Serializable'],
  ];

  it.each(levels)('runs as %s where it was asked for %s', async (expected, isolationLevel) => {
    let seen: unknown;
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(
          async (tx) => {
            seen = await tx.$queryRaw`SELECT current_setting('transaction_isolation') AS level`;
            return recordPayment(tx, request, attempt);
          },
          isolationLevel === undefined ? {} : { isolationLevel },
        ),
    });

    expect(await service.pay()).toMatchObject({ code: status.OK });

    expect(seen).toEqual([{ level: expected }]);
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each(['RepeatableRead', 'Serializable'] as const)(
    'for what others wrote meanwhile, %s, loses no update',
    async (isolationLevel) => {
      await service.database.rows('CREATE TABLE counter AS SELECT 0 AS value');
      let arrive: () => void = () => undefined;
      const bothHaveRead = new Promise<void>((resolve) => (arrive = resolve));
      let readers = 0;
      service.handle({
        createPayment: (request, attempt) =>
          attempt.complete(
            async (tx) => {
              const [read] = await tx.$queryRaw<{ value: number }[]>`SELECT value FROM counter`;
              readers += 1;
              if (readers === 2) arrive();
              await bothHaveRead;
              await tx.$executeRaw`UPDATE counter SET value = ${(read?.value ?? 0) + 1}`;
              return recordPayment(tx, request, attempt);
            },
            { isolationLevel },
          ),
      });
      try {
        const answers = await Promise.all([service.pay(), service.pay()]);

        expect(answers.map(({ code }) => code)).toEqual([status.OK, status.OK]);
        expect(readers).toBeGreaterThan(2);
        expect(await service.database.rows('SELECT value FROM counter')).toEqual([{ value: 2 }]);
        expect(await service.database.count('payments')).toBe(2);
      } finally {
        await service.database.rows('DROP TABLE counter');
      }
    },
  );
});

describe('a transaction that takes as long as its lease (design 4.8)', () => {
  it('is rolled back, and a retry may pay', async () => {
    const service = await startAttemptService({ policy: { leaseMs: 1_000 } });
    try {
      const requestId = randomUUID();
      service.handle({
        createPayment: (request, attempt) =>
          attempt.complete(async (tx) => {
            const response = await recordPayment(tx, request, attempt);
            await tx.$queryRaw`SELECT 1 AS one FROM pg_sleep(1.2)`;
            return response;
          }),
      });
      expect(await service.pay({ requestId })).toMatchObject({
        code: status.UNAVAILABLE,
        error: { reason: 'STORE_UNAVAILABLE' },
      });
      expect(await service.database.count('payments')).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);

      service.handle({ createPayment: payAndComplete });
      expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
      expect(await service.database.count('payments')).toBe(1);
    } finally {
      await service.stop();
    }
  });
});
