import { status } from '@grpc/grpc-js';
import { CreatePaymentResponse } from '../../src/gen/proto/payments/v1/payments';
import type { IdempotencyStore } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService, toldText } from '../support/attempt-service';
import { failWrites } from '../support/failing-writes';

/** Parts of the store that a test breaks. */
type Broken = Partial<Pick<IdempotencyStore<never>, 'lookUp' | 'releaseIfHeld'>>;

const SECRET = 'SELECT * FROM secrets on db-7.internal';
const RECORDED = Buffer.from(CreatePaymentResponse.encode({ payment: undefined }).finish());

describe('an attempt that loses its claim while its handler works (design 4.8)', () => {
  let service: AttemptService;
  let broken: Broken = {};

  beforeAll(async () => {
    service = await startAttemptService({
      wrapStore: (store) => ({
        ...store,
        lookUp: (request) => (broken.lookUp ?? store.lookUp)(request),
        releaseIfHeld: (claim) => (broken.releaseIfHeld ?? store.releaseIfHeld)(claim),
      }),
    });
  });

  beforeEach(async () => {
    broken = {};
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const payWhile = (change: string) => {
    service.handle({
      createPayment: async (request, attempt) => {
        await service.database.rows(change);
        return payAndComplete(request, attempt);
      },
    });
    return service.pay();
  };

  const TAKEN = 'owner_token = gen_random_uuid(), attempt = 2';
  const COMPLETED = `state = 'completed', completed_at = now(), status_code = 0, response = '\\x'`;

  const losses: readonly [string, string, status, string][] = [
    ['runs elsewhere', `UPDATE idempotency_record SET ${TAKEN}`, status.ABORTED, 'CLAIM_LOST'],
    ['is gone', 'DELETE FROM idempotency_record', status.ABORTED, 'CLAIM_LOST'],
    ['was parked', `UPDATE idempotency_record SET state = 'parked'`, status.FAILED_PRECONDITION, 'REQUEST_PARKED'],
    [
      'was expired',
      `UPDATE idempotency_record SET state = 'expired'`,
      status.FAILED_PRECONDITION,
      'REQUEST_ID_EXPIRED',
    ],
    [
      'is of another request',
      `UPDATE idempotency_record SET ${TAKEN}, fingerprint = '\\x0102'`,
      status.FAILED_PRECONDITION,
      'REQUEST_ID_REUSED',
    ],
  ];

  it.each(losses)('to one that %s changes nothing and is told so', async (_, change, code, reason) => {
    const answer = await payWhile(change);

    expect(answer).toMatchObject({ code, error: { reason } });
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'fenced' }));
    expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    expect(await service.database.count('payments')).toBe(0);
  });

  it.each([
    ['by another owner', `UPDATE idempotency_record SET ${TAKEN}, ${COMPLETED}`],
    ['under its own token', `UPDATE idempotency_record SET ${COMPLETED}`],
  ])('to a completion %s gives that answer, marked as a replay', async (_, change) => {
    const answer = await payWhile(change);

    expect(answer.code).toBe(status.OK);
    expect(answer.bytes).toEqual(RECORDED);
    expect(answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(answer.trailers.get('idempotency-expires-at')).toHaveLength(1);
    expect(await service.database.count('payments')).toBe(0);
  });

  it('is not told as success by a handler that answers all the same', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        await service.database.rows(`UPDATE idempotency_record SET ${TAKEN}`);
        return payAndComplete(request, attempt).catch(() => ({ payment: undefined }));
      },
    });

    expect(await service.pay()).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
  });

  it('is UNAVAILABLE where the winner can not be looked up', async () => {
    broken = { lookUp: () => Promise.reject(new Error(SECRET)) };

    const answer = await payWhile('DELETE FROM idempotency_record');

    expect(answer).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'STORE_UNAVAILABLE' } });
    expect(toldText(answer)).not.toContain('secrets');
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'the winner of a lost claim could not be looked up' }),
    );
  });

  it('and then fails leaves the key to its new owner', async () => {
    service.handle({
      createPayment: async () => {
        await service.database.rows(`UPDATE idempotency_record SET ${TAKEN}`);
        throw new Error(SECRET);
      },
    });

    const answer = await service.pay();

    expect(answer).toMatchObject({ code: status.ABORTED, error: { reason: 'CLAIM_LOST' } });
    expect(toldText(answer)).not.toContain('secrets');
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'fenced' }));
    expect(await service.database.rows('SELECT state, attempt FROM idempotency_record')).toEqual([
      { state: 'claimed', attempt: 2 },
    ]);
  });

  it('or can not give it back answers as it would have, and the lease frees the key', async () => {
    broken = { releaseIfHeld: () => Promise.reject(new Error(SECRET)) };
    service.handle({ createPayment: () => Promise.reject(new Error('broken')) });

    expect(toldText(await service.pay())).toBe('internal error');

    expect(service.events).toContainEqual(
      expect.objectContaining({
        type: 'fault',
        what: 'a claim could not be released; it ends with its lease at the latest',
      }),
    );
    expect(await service.database.rows('SELECT state FROM idempotency_record')).toEqual([{ state: 'claimed' }]);
  });
});

describe('a call whose key can not be claimed', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  afterAll(() => service.stop());

  it('is UNAVAILABLE, runs nothing, and learns nothing of what the database said', async () => {
    service.handle({ createPayment: payAndComplete });
    const failing = await failWrites(service.database, {
      ...{ table: 'idempotency_record', write: 'INSERT', sqlState: 'P0001' },
    });
    try {
      const answer = await service.pay();

      expect(answer).toMatchObject({
        code: status.UNAVAILABLE,
        error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
      });
      expect(toldText(answer)).not.toMatch(/internal|INSERT|prisma|made to fail/i);
      expect(service.events).toContainEqual(
        expect.objectContaining({ type: 'fault', what: 'a key could not be claimed' }),
      );
    } finally {
      await failing.remove();
    }
    expect(await service.database.count('payments')).toBe(0);
  });

  it('is no answer where its record belongs to somebody else under the same id', async () => {
    service.handle({ createPayment: payAndComplete });
    const requestId = 'f0000000-0000-4000-8000-000000000001';
    await service.pay({ requestId });
    await service.database.rows(`UPDATE idempotency_record SET scope = 'account-2'`);

    const answer = await service.pay({ requestId });

    expect(answer).toMatchObject({ code: status.UNAVAILABLE, bytes: undefined });
    expect(await service.database.count('payments')).toBe(1);
  });
});
