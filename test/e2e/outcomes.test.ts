import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { reject, type Rejection, StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  type PaymentAttempt,
  recordPayment,
  startAttemptService,
} from '../support/attempt-service';
import { aborted } from '../support/deferred';
import type { StockAnswer } from '../support/stock-client';
import { endLeases } from '../support/stored-record';

/** Every code there is but OK, by name. */
const CODES = Object.entries(status).flatMap(([name, code]) =>
  typeof code === 'number' && code !== status.OK ? [[name, code] as const] : [],
);

test('the table below is of all codes', () => {
  expect(CODES.map(([, code]) => code)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
});

describe('how an attempt ends (design 4.8, cases D1 and D2)', () => {
  let service: AttemptService;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(async () => {
    runs = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  /** The first run ends as the test says, after its effect; every later one pays. */
  const endFirst = (end: () => Rejection | Promise<never>): void =>
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          const paid = await recordPayment(tx, request, attempt);
          return runs === 1 ? end() : paid;
        }),
    });

  it.each(CODES)('thrown as %s: told, rolled back, and run again by the retry', async (name, code) => {
    endFirst(() => Promise.reject(new StatusError(code, `not now: ${name}`)));
    const requestId = randomUUID();

    const first = await service.pay({ requestId });

    expect(first).toMatchObject({ code, details: `not now: ${name}`, trailersOnly: true });
    expect(first.trailers.get('idempotency-expires-at')).toEqual([]);
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
    const second = await service.pay({ requestId });
    expect(second.code).toBe(status.OK);
    expect(second.trailers.get('idempotent-replayed')).toEqual([]);
    for (let again = 1; again <= 2; again += 1) {
      const retry = await service.pay({ requestId });
      expect(retry).toMatchObject({ code: status.OK, bytes: second.bytes });
      expect(retry.trailers.get('idempotent-replayed')).toEqual(['true']);
    }
    expect(runs).toBe(2);
    expect(service.events.filter(({ type }) => type === 'execution')).toHaveLength(2);
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each(CODES)('returned as a rejection with %s: committed, and told again without a run', async (name, code) => {
    endFirst(() => reject(new StatusError(code, `never: ${name}`)));
    const requestId = randomUUID();

    const answers = [await service.pay({ requestId }), await service.pay({ requestId })];

    for (const answer of answers) {
      expect(answer).toMatchObject({ code, details: `never: ${name}`, trailersOnly: true, bytes: undefined });
      expect(answer.trailers.get('idempotency-expires-at')).toHaveLength(1);
    }
    expect(answers.map(({ trailers }) => trailers.get('idempotent-replayed'))).toEqual([[], ['true']]);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    const replays = service.events.flatMap((event) =>
      event.type === 'admitted' && event.outcome === 'replayed' ? [event.recordedCode] : [],
    );
    expect(replays).toEqual([code]);
  });

  it('returned: committed, and told again byte for byte, marked, without a run (case D5)', async () => {
    service.handle({
      createPayment: (request, attempt) => {
        runs += 1;
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const answers = [
      await service.pay({ requestId }),
      await service.pay({ requestId }),
      await service.pay({ requestId }),
    ];

    expect(answers.map(({ code }) => code)).toEqual([status.OK, status.OK, status.OK]);
    expect(answers.map(({ trailers }) => trailers.get('idempotent-replayed'))).toEqual([[], ['true'], ['true']]);
    for (const { bytes } of answers) expect(bytes).toEqual(answers[0]?.bytes);
    expect(runs).toBe(1);
  });

  it('with a write of its own beside the transaction: that write is outside the promise, the others are rolled back', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        if (runs === 1) {
          await recordPayment(service.connections.business, { ...request, orderId: 'order-beside' }, attempt);
          throw new StatusError(status.UNAVAILABLE, 'the mail server is away');
        }
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    expect((await service.pay({ requestId })).code).toBe(status.UNAVAILABLE);
    expect((await service.pay({ requestId })).code).toBe(status.OK);
    expect(await service.database.rows('SELECT order_id FROM payments ORDER BY order_id')).toEqual([
      { order_id: 'order-1' },
      { order_id: 'order-beside' },
    ]);
  });
});

describe('an attempt that fails after it was overtaken (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));
  afterAll(() => service.stop());

  const ALREADY_PAID = new StatusError(status.FAILED_PRECONDITION, 'the order is paid already');
  type Fails = (attempt: PaymentAttempt) => Promise<never>;
  const failures: readonly (readonly [string, Fails, boolean])[] = [
    ['on purpose', () => Promise.reject(ALREADY_PAID), false],
    ['on purpose inside complete', (attempt) => attempt.complete(() => Promise.reject(ALREADY_PAID)), false],
    ['by accident', () => Promise.reject(new Error('duplicate key on db-7.internal')), true],
    ['because it was told so', ({ signal }) => Promise.reject(signal.reason as Error), false],
  ];

  it.each(failures)(
    '%s tells the answer of its heir: that is what became of the request',
    async (_, fails, isFault) => {
      const requestId = randomUUID();
      let runs = 0;
      let heir: StockAnswer | undefined;
      service.handle({
        createPayment: async (request, attempt) => {
          if ((runs += 1) > 1) return payAndComplete(request, attempt);
          const { signal } = attempt;
          await endLeases(service.database);
          heir = await service.pay({ requestId });
          attempt.publish({ resource: 'payments/late' });
          await aborted(signal);
          return fails(attempt);
        },
      });

      const late = await service.pay({ requestId });

      expect(heir?.code).toBe(status.OK);
      expect(late).toMatchObject({ code: status.OK, bytes: heir?.bytes });
      expect(late.trailers.get('idempotent-replayed')).toEqual(['true']);
      expect(await service.database.count('payments')).toBe(1);
      const faults = service.events.flatMap((event) => (event.type === 'fault' ? [event.what] : []));
      expect(faults).toEqual(isFault ? ['the handler failed after its claim was lost'] : []);
      expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    },
  );

  it('is asked to come back for that answer where there is none yet', async () => {
    const requestId = randomUUID();
    service.handle({
      createPayment: async () => {
        await service.database.rows('UPDATE idempotency_record SET owner_token = gen_random_uuid(), attempt = 2');
        throw ALREADY_PAID;
      },
    });

    const late = await service.pay({ requestId });

    expect(late).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(await service.database.rows('SELECT state, attempt FROM idempotency_record')).toEqual([
      { state: 'claimed', attempt: 2 },
    ]);
  });
});
