import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { endLeases, onlyRecord } from '../support/stored-record';

describe('an outage of the other side, past a recovery point', () => {
  let service: AttemptService;
  let runs: number;
  const requestId = randomUUID();

  beforeAll(async () => (service = await startAttemptService()));
  beforeEach(async () => {
    await service.database.rows('TRUNCATE idempotency_record, payments');
    failWith(() => new StatusError(status.UNAVAILABLE, 'the network is away'));
  });
  afterAll(() => service.stop());

  const failWith = (failure: () => Error): void => {
    runs = 0;
    service.handle({
      createPayment: async (_, attempt) => {
        runs += 1;
        await attempt.effect('charge', () => Promise.reject(failure()));
        throw new Error('not reached');
      },
    });
  };
  const pay = () => service.pay({ requestId });
  /** How long nobody may take the request over, seconds. */
  const pauseSeconds = async (): Promise<number> => {
    const [row] = await service.database.rows<{ left: number }>(
      'SELECT greatest(0, extract(epoch FROM lease_until - now()))::float8 AS left FROM idempotency_record',
    );
    return row?.left ?? NaN;
  };

  it('does not use up the attempts: the next one waits, the longer the more there were', async () => {
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      const answer = await pay();
      expect(answer).toMatchObject({ code: status.UNAVAILABLE, details: 'the network is away' });
      // The caller is told, also one who reads no details.
      const told = answer.error.retryDelayMs;
      expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(told === undefined ? [] : [String(told)]);
      const left = await pauseSeconds();
      expect(left).toBeLessThanOrEqual((told ?? 0) / 1_000);
      expect(left).toBeGreaterThan((told ?? 0) / 1_000 - 2);
      pauses.push((told ?? 0) / 1_000);
      await endLeases(service.database);
    }
    expect(pauses).toEqual([0, 2, 6, 18, 54, 162, 486, 1_458, 3_600, 0]);
    // Whoever asks after the last one finds it parked at once.
    expect(await pay()).toMatchObject({ error: { reason: 'REQUEST_PARKED' } });
    expect(runs).toBe(10);
  });

  it('lets no call meanwhile run anything or count, and tells it when to come again', async () => {
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      await endLeases(service.database);
      await pay();
    }
    for (let call = 0; call < 10; call += 1) {
      const { code, error } = await pay();
      expect([code, error.reason]).toEqual([status.ABORTED, 'REQUEST_IN_PROGRESS']);
      expect(error.retryDelayMs).toBeLessThanOrEqual(18_000);
    }
    expect(runs).toBe(4);
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'claimed', attempt: 4 });
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.effect('charge', () => Promise.resolve('charged'));
        return payAndComplete(request, attempt);
      },
    });
    await endLeases(service.database);
    expect((await pay()).code).toBe(status.OK);
  });

  it('of our own database is one too: a lock that does not come uses up no attempts either', async () => {
    await service.database.rows('CREATE TABLE busy AS SELECT 1 AS id');
    const blocker = await service.database.pool.connect();
    await blocker.query('BEGIN; SELECT FROM busy FOR UPDATE');
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.effect('charge', () => Promise.resolve('charged'));
        await attempt.phase('book', async (tx) => {
          await tx.$executeRaw`SET LOCAL lock_timeout = '5ms'`;
          await tx.$executeRaw`UPDATE busy SET id = 2`;
        });
        return payAndComplete(request, attempt);
      },
    });
    try {
      const told: unknown[] = [];
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        await endLeases(service.database);
        const { code, error } = await pay();
        told.push([code, error.reason, error.retryDelayMs]);
      }
      expect(told.slice(1)).toEqual([
        [status.UNAVAILABLE, 'STORE_UNAVAILABLE', 2_000],
        [status.UNAVAILABLE, 'STORE_UNAVAILABLE', 6_000],
      ]);
    } finally {
      await blocker.query('ROLLBACK');
      blocker.release();
    }
    await endLeases(service.database);
    expect((await pay()).code).toBe(status.OK);
  });

  it('takes the token away with the lease, so that nothing late revives it (design 4.7)', async () => {
    await pay();
    const tokens: unknown[] = [];
    const readToken = async () =>
      tokens.push(...(await service.database.rows('SELECT owner_token FROM idempotency_record')));
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.effect('charge', async () => {
          await readToken();
          throw new StatusError(status.UNAVAILABLE, 'the network is away');
        });
        throw new Error('not reached');
      },
    });
    await pay();
    await readToken();
    expect(tokens[0]).not.toEqual(tokens[1]);
    expect(await pauseSeconds()).toBeGreaterThan(0);
  });

  it('is not what another failure is, which the next attempt resumes at once', async () => {
    failWith(() => new Error('a fault of ours'));
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await pay()).toMatchObject({ code: status.INTERNAL });
      expect(await pauseSeconds()).toBe(0);
    }
    failWith(() => new StatusError(status.FAILED_PRECONDITION, 'not like this'));
    expect(await pay()).toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringMatching(/^not like this/) as unknown,
    });
    expect(await pauseSeconds()).toBe(0);
    // Each of them counts.
    expect(await onlyRecord(service.database)).toMatchObject({ state: 'claimed', attempt: 4 });
  });

  it('holds no key where nothing is stored: it is given back as ever', async () => {
    service.handle({ createPayment: () => Promise.reject(new StatusError(status.UNAVAILABLE, 'not now')) });
    for (let call = 0; call < 3; call += 1) {
      const { code, error } = await pay();
      expect([code, error.retryDelayMs]).toEqual([status.UNAVAILABLE, undefined]);
      expect(await service.database.count('idempotency_record')).toBe(0);
    }
  });
});
