import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { Prisma } from '../../src/gen/prisma/client';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer } from '../support/stock-client';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

/** How long a handler works before it completes, milliseconds. */
const WORK_MS = 300;

describe.each([1, 2])(
  'two processes with pools of %d, whose handlers use the client of their own (case K5)',
  (size) => {
    let database: TestDatabase;
    let services: readonly AttemptService[];

    beforeAll(async () => {
      database = await createTestDatabase();
      const pools = { businessPoolSize: size, storePoolSize: size };
      const start = (): Promise<AttemptService> =>
        startAttemptService({ database: { ...database, drop: () => Promise.resolve() }, pools });
      services = [await start(), await start()];
      for (const service of services) {
        const client: Prisma.TransactionClient = service.connections.business;
        service.handle({
          createPayment: async (request, attempt) => {
            await client.$queryRaw`SELECT 1 AS one`;
            await delay(WORK_MS);
            await client.$queryRaw`SELECT 2 AS two`;
            return payAndComplete(request, attempt);
          },
        });
      }
    });

    afterAll(async () => {
      for (const service of services) await service.stop();
      await database.drop();
    });

    it('starve nobody: 30 duplicates of one key get its answer or are asked to come back, and 10 other keys pay', async () => {
      const requestId = randomUUID();
      const of = (index: number): AttemptService => services[index % 2] as AttemptService;
      const duplicates = Array.from({ length: 30 }, (_, index) => of(index).pay({ requestId }));
      const others = Array.from({ length: 10 }, (_, index) =>
        of(index).pay({ request: paymentRequest({ order_id: 'order-2' }) }),
      );

      expect((await Promise.all(others)).map(({ code }) => code)).toEqual(Array(10).fill(status.OK));
      const told = await Promise.all(duplicates);
      const outcome = ({ code, error }: StockAnswer): string => error.reason ?? status[code];
      const outcomes = new Set(told.map(outcome));
      expect(outcomes.has('OK')).toBe(true);
      expect([...outcomes].filter((one) => one !== 'OK' && one !== 'REQUEST_IN_PROGRESS')).toEqual([]);
      const paid = told.filter(({ code }) => code === status.OK);
      expect(new Set(paid.map(({ bytes }) => bytes?.toString('hex'))).size).toBe(1);
      expect(await database.count("payments WHERE order_id = 'order-1'")).toBe(1);
      expect(await database.count('payments')).toBe(11);
      expect(services.flatMap(({ events }) => events.filter(({ type }) => type === 'fault'))).toEqual([]);
    });
  },
);
