import { randomUUID } from 'node:crypto';
import { Metadata, status } from '@grpc/grpc-js';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { type RefusalReason, readErrorDetails, REFUSALS } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  type PaymentHandlers,
  startAttemptService,
} from '../support/attempt-service';
import { datedKey } from '../support/claim-requests';
import { deferred } from '../support/deferred';
import { failWrites } from '../support/failing-writes';
import { type RawAnswer, rawCall } from '../support/raw-call';

const PATH = '/payments.v1.PaymentsService/CreatePayment';
const HOUR_MS = 3_600_000;
const KEY = randomUUID();

type Headers = Readonly<Record<string, string>>;

/** One line of the table of refusals (design 3.3): how it comes about, and what its caller is told. */
interface Refused {
  readonly reason: RefusalReason;
  readonly situation: string;
  readonly code: status;
  /** `never`, or about how many milliseconds: from, to. */
  readonly retry: 'never' | readonly [number, number];
  readonly violated?: true;
  readonly resource?: string;
  /** Sent with the call. Default: a good key. */
  readonly headers?: Headers;
  /** Brings the service into the situation; what it returns takes it out again. */
  readonly arrange?: (service: AttemptService, key: string) => Promise<(() => Promise<void>) | undefined>;
  readonly order?: string;
}

const keyed = (key: string): Headers => ({ 'request-id': key });
const paying: PaymentHandlers = { createPayment: payAndComplete };

/** Pays once under the key, and changes what was recorded. */
const recordedAs =
  (change: string): NonNullable<Refused['arrange']> =>
  async (service, key) => {
    await service.pay({ requestId: key });
    await service.database.rows(`UPDATE idempotency_record SET ${change}`);
    return undefined;
  };

const TABLE: readonly Refused[] = [
  {
    ...{ reason: 'REQUEST_ID_MISSING', situation: 'no key', code: status.INVALID_ARGUMENT, retry: 'never' },
    ...{ headers: {}, violated: true },
  },
  {
    ...{ reason: 'REQUEST_ID_MISSING', situation: 'an empty key', code: status.INVALID_ARGUMENT, retry: 'never' },
    ...{ headers: keyed(''), violated: true },
  },
  {
    ...{ reason: 'REQUEST_ID_MALFORMED', situation: 'no UUID', code: status.INVALID_ARGUMENT, retry: 'never' },
    ...{ headers: keyed('order-1'), violated: true },
  },
  {
    ...{ reason: 'REQUEST_ID_FROM_FUTURE', situation: 'dated ahead', code: status.INVALID_ARGUMENT, retry: 'never' },
    headers: keyed(datedKey(Date.now() + HOUR_MS)),
  },
  {
    ...{ reason: 'REQUEST_ID_EXPIRED', situation: 'too old', code: status.FAILED_PRECONDITION, retry: 'never' },
    headers: keyed(datedKey(Date.now() - 25 * HOUR_MS)),
  },
  {
    ...{ reason: 'REQUEST_ID_EXPIRED', situation: 'made to expire', code: status.FAILED_PRECONDITION, retry: 'never' },
    arrange: recordedAs("state = 'expired'"),
  },
  {
    ...{ reason: 'REQUEST_ID_REUSED', situation: 'other content', code: status.FAILED_PRECONDITION, retry: 'never' },
    ...{ arrange: recordedAs("state = 'completed'"), order: 'order-2' },
  },
  {
    ...{ reason: 'REQUEST_IN_PROGRESS', situation: 'still running', code: status.ABORTED, retry: [50, 5_000] },
    resource: 'payments/1',
    arrange: async (service, key) => {
      const [started, proceed] = [deferred(), deferred()];
      service.handle({
        createPayment: async (request, attempt) => {
          started.resolve();
          await proceed.promise;
          return payAndComplete(request, attempt);
        },
      });
      const running = service.pay({ requestId: key });
      await started.promise;
      await service.database.rows("UPDATE idempotency_record SET resource = 'payments/1'");
      return async () => {
        proceed.resolve();
        await running;
      };
    },
  },
  {
    ...{ reason: 'CLAIM_LOST', situation: 'overtaken', code: status.ABORTED, retry: [500, 500] },
    arrange: (service) => {
      service.handle({
        createPayment: async (request, attempt) => {
          await service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid()');
          return payAndComplete(request, attempt);
        },
      });
      return Promise.resolve(undefined);
    },
  },
  {
    ...{ reason: 'RESPONSE_NOT_RECORDED', situation: 'not kept', code: status.ALREADY_EXISTS, retry: 'never' },
    ...{ arrange: recordedAs("answer_kept = false, response = NULL, resource = 'payments/1'"), resource: 'payments/1' },
  },
  {
    ...{ reason: 'REQUEST_PARKED', situation: 'given up', code: status.FAILED_PRECONDITION, retry: 'never' },
    arrange: recordedAs(
      "state = 'parked', completed_at = NULL, status_code = NULL, status_message = NULL, response = NULL, trailers = NULL",
    ),
  },
  ...[{ 'grpc-previous-rpc-attempts': '1' }, { 'x-envoy-attempt-count': '2' }].map((headers): Refused => ({
    ...{ reason: 'KEYLESS_RETRY', situation: JSON.stringify(headers), code: status.FAILED_PRECONDITION },
    ...{ retry: 'never', headers: headers },
  })),
  {
    ...{
      reason: 'STORE_UNAVAILABLE',
      situation: 'no record to be had',
      code: status.UNAVAILABLE,
      retry: [1_000, 1_000],
    },
    arrange: async ({ database }) => {
      const failing = await failWrites(database, { table: 'idempotency_record', write: 'INSERT', sqlState: '53100' });
      return failing.remove;
    },
  },
  {
    ...{
      reason: 'STORE_UNAVAILABLE',
      situation: 'as many as may run',
      code: status.UNAVAILABLE,
      retry: [1_000, 1_000],
    },
    arrange: async (service) => {
      const proceed = deferred();
      const started = [deferred(), deferred()];
      let index = 0;
      service.handle({
        createPayment: async (request, attempt) => {
          started[index++]?.resolve();
          await proceed.promise;
          return payAndComplete(request, attempt);
        },
      });
      const running = [service.pay(), service.pay()];
      await Promise.all(started.map(({ promise }) => promise));
      return async () => {
        proceed.resolve();
        expect((await Promise.all(running)).map(({ code }) => code)).toEqual([status.OK, status.OK]);
      };
    },
  },
  {
    ...{ reason: 'PRINCIPAL_MISSING', situation: 'a stranger', code: status.UNAUTHENTICATED, retry: 'never' },
    headers: { ...keyed(KEY), stranger: 'yes' },
  },
];

test('every refusal there is stands in the table below, with its code (design 3.3)', () => {
  expect(new Set(TABLE.map(({ reason }) => reason))).toEqual(new Set(Object.keys(REFUSALS)));
  for (const { reason, code } of TABLE) expect(REFUSALS[reason].code).toBe(code);
});

describe('a refusal on the wire (design 3.3)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({
      principal: ({ metadata }) => (metadata.get('stranger').length > 0 ? undefined : 'account-1'),
      server: { mostAttempts: 2 },
    });
  });

  beforeEach(async () => {
    service.handle(paying);
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const call = (headers: Headers, orderId: string): Promise<RawAnswer> => {
    const request = CreatePaymentRequest.fromPartial({
      ...{ orderId, amountMinor: 1_250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: { basket: '7' } },
    });
    return rawCall(service.port, PATH, [CreatePaymentRequest.encode(request).finish()], headers);
  };

  /** The details of one frame, read as a client reads them. */
  const detailsOf = ({ headers }: RawAnswer) => {
    const metadata = new Metadata();
    metadata.set('grpc-status-details-bin', Buffer.from(String(headers['grpc-status-details-bin']), 'base64'));
    return readErrorDetails(metadata);
  };

  it.each(TABLE.map((refused) => [refused.reason, refused.situation, refused] as const))(
    '%s (%s) is one frame that says all there is to know',
    async (reason, _, { code, retry, violated, resource, headers, arrange, order = 'order-1' }) => {
      const key = randomUUID();
      const takeBack = await arrange?.(service, key);
      try {
        const answer = await call(headers ?? keyed(key), order);

        expect(answer).toMatchObject({ code, endedByHeaders: true, response: undefined });
        const details = detailsOf(answer);
        expect(details).toMatchObject({ reason, domain: 'idempotency.v1', unreadable: false });
        expect(details.metadata.get('resource')).toBe(resource);
        expect(details.violations.map(({ field }) => field)).toEqual(violated ? ['request-id'] : []);
        const pushback = Number(answer.headers['grpc-retry-pushback-ms']);
        if (retry === 'never') {
          expect(details.retryDelayMs).toBeUndefined();
          expect(pushback).toBe(-1);
        } else {
          expect(details.retryDelayMs).toBe(pushback);
          expect(pushback).toBeGreaterThanOrEqual(retry[0]);
          expect(pushback).toBeLessThanOrEqual(retry[1]);
          expect(answer.message).toContain('retry with the same key');
        }
        // Never the key, never anything internal.
        expect(answer.message).not.toBe('');
        const sent = headers?.['request-id'] || key;
        expect(JSON.stringify([answer.headers, [...details.metadata], details.violations])).not.toContain(sent);
        expect(answer.message).not.toMatch(/prisma|postgres|internal|idempotency_record/i);
      } finally {
        await takeBack?.();
      }
    },
  );
});
