import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, type AttemptServiceOptions, startAttemptService } from './attempt-service';
import { CREATE_CHARGES, payInSteps } from './pay-in-steps';
import { paymentRequest } from './payment-requests';

/** The request of these tests, as a client of the method sends it. */
export const REQUEST = paymentRequest({ order_id: 'order-1' });

/** Nothing happens there. */
export const goOn = (): Promise<void> => Promise.resolve();

/** A service whose payments are left half way. */
export interface HalfFinishing {
  readonly service: AttemptService;
  /** Another service on the same database. */
  another(options: AttemptServiceOptions): Promise<AttemptService>;
  /** Makes a request whose first attempt fails half way, and whose caller does not come back. Returns its key. */
  halfFinished(requestId?: string): Promise<string>;
  /** The payments of the next attempts go through. */
  goThrough(): void;
  /** Lets so much time go by that everything half finished is due. */
  muchLater(): Promise<void>;
  /** The first record. */
  record(): Promise<{ readonly state: string; readonly attempt: number; readonly request: Buffer | null } | undefined>;
  /** Forgets all records, payments and charges. */
  clear(): Promise<void>;
}

/** Starts the service, whose CreatePayment is resumed. Stop `service` in `afterAll`. */
export async function startHalfFinishing(options: AttemptServiceOptions = {}): Promise<HalfFinishing> {
  const service = await startAttemptService({ policy: { resume: true }, ...options });
  const { database } = service;
  await database.rows(CREATE_CHARGES);
  return {
    service,
    another: (others) =>
      startAttemptService({
        ...{ database: { ...database, drop: () => Promise.resolve() }, policy: { resume: true } },
        ...others,
      }),
    halfFinished: async (requestId = randomUUID()) => {
      service.handle({
        createPayment: payInSteps(database, async (point) => {
          if (point === 'charged') throw new StatusError(status.UNAVAILABLE, 'not now');
        }),
      });
      const { code } = await service.pay({ request: REQUEST, requestId });
      if (code !== status.UNAVAILABLE) throw new Error(`expected to be left half way, got ${status[code]}`);
      return requestId;
    },
    goThrough: () => service.handle({ createPayment: payInSteps(database, goOn) }),
    muchLater: async () => {
      await database.rows(`UPDATE idempotency_record SET lease_until = lease_until - interval '2 hours'`);
    },
    record: async () => {
      const columns = 'state, attempt, request';
      const rows = await database.rows<{ state: string; attempt: number; request: Buffer | null }>(
        `SELECT ${columns} FROM idempotency_record`,
      );
      return rows[0];
    },
    clear: async () => {
      await database.rows('TRUNCATE idempotency_record, payments, charges');
    },
  };
}
