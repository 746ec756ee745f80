import { randomUUID } from 'node:crypto';
import { createDays } from '../../src/idempotency/index';
import { COUNT_STRANDED, SELECT_HALF_FINISHED } from '../../src/idempotency/store/sql/half-finished';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf, type RequestChange } from '../support/claim-requests';
import * as statements from '../support/scheduler-statements';
import { answerOf, claim, complete, held, idOf, openTestStore, type TestStore } from '../support/store';

const CREATE = policyOf('CreatePayment', { resume: true });
const MESSAGE = Buffer.from('the request, as received\0');
/** Ten seconds after the lease of a first attempt, and an hour at most. */
const TERMS = { paths: [CREATE.path], shortestWaitMs: 10_000, longestWaitMs: 3_600_000, limit: 100 };

let opened: TestStore;

beforeAll(async () => {
  opened = await openTestStore();
  await createDays(opened.connections.store);
});
afterAll(() => opened.close());
beforeEach(() => opened.database.rows('DELETE FROM idempotency_record'));

const resumable = (change: RequestChange = {}): ClaimRequest => ({
  ...claimRequest({ policy: CREATE, ...change }),
  message: MESSAGE,
});

const change = (request: ClaimRequest, set: string): Promise<unknown> =>
  opened.database.rows(`UPDATE idempotency_record SET ${set} WHERE id = $1`, [idOf(request)]);

const storedRequest = async (request: ClaimRequest): Promise<Buffer | null | undefined> =>
  (
    await opened.database.rows<{ request: Buffer | null }>('SELECT request FROM idempotency_record WHERE id = $1', [
      idOf(request),
    ])
  )[0]?.request;

/** A request whose effect has begun, and whose owner died so long ago. */
const halfFinished = async (overMs: number, which: RequestChange = {}): Promise<ClaimRequest> => {
  const request = resumable(which);
  const mine = await claim(opened.store, request);
  await opened.store.recordStepIfHeld(mine, { recoveryPoint: 'charge#begun', results: Buffer.from('[]') });
  await change(request, `lease_until = now() - ${overMs} * interval '1 millisecond'`);
  return request;
};

const found = async (terms: Partial<typeof TERMS> = {}): Promise<readonly string[]> =>
  (await opened.store.findHalfFinished({ ...TERMS, ...terms })).map(({ requestId }) => requestId);

describe('the request of a method that is resumed', () => {
  it('is kept from its claim to its completion, alone or in a batch, and of no other method', async () => {
    const [alone, plain] = [resumable(), claimRequest()];
    const mine = await claim(opened.store, alone);
    await claim(opened.store, plain);
    const batch = Array.from({ length: 6 }, (_, index) => (index % 2 === 0 ? resumable() : claimRequest()));
    await Promise.all(batch.map((request) => claim(opened.store, request)));

    expect(await storedRequest(alone)).toEqual(MESSAGE);
    expect(await storedRequest(plain)).toBeNull();
    expect(await Promise.all(batch.map(storedRequest))).toEqual([MESSAGE, null, MESSAGE, null, MESSAGE, null]);
    expect(await complete(opened.store, mine, answerOf('done'))).toBe(true);
    expect(await storedRequest(alone)).toBeNull();
  });

  it('costs other methods no index: their steps, renewals and completions stay HOT', async () => {
    const client = await opened.database.pool.connect();
    const countHot = async (): Promise<number> => {
      const { rows } = await client.query<{ hot: string }>(
        `SELECT pg_stat_get_xact_tuples_hot_updated('idempotency_record_undated'::regclass) AS hot`,
      );
      return Number(rows[0]?.hot);
    };
    const hotUpdates = async (request: ClaimRequest): Promise<number> => {
      const mine = await claim(opened.store, request);
      const before = await countHot();
      await client.query('BEGIN');
      for (const { text, values } of [
        statements.recordStep(request, mine.ownerToken),
        statements.renew(request, mine.ownerToken),
        statements.complete(request, mine.ownerToken),
      ]) {
        await client.query(text, [...values]);
      }
      const after = await countHot();
      await client.query('ROLLBACK');
      return after - before;
    };
    try {
      expect(await hotUpdates(claimRequest())).toBe(3);
      // That of a completion which clears the request is not.
      expect(await hotUpdates(resumable())).toBe(2);
    } finally {
      client.release();
    }
  });
});

describe('half-finished requests', () => {
  it('are found once their lease has been over for a while, with what it takes to run them again', async () => {
    const request = await halfFinished(11_000);
    expect(await opened.store.findHalfFinished(TERMS)).toEqual([
      {
        ...{ path: CREATE.path, scope: request.scope, requestId: request.key.text },
        ...{ fingerprint: request.fingerprint, message: MESSAGE },
      },
    ]);
  });

  it.each([
    ['before that', 'lease_until = now() - 9000 * interval $$1 millisecond$$'],
    ['while an attempt runs', 'lease_until = now() + interval $$1 minute$$'],
    ['without a step: their callers retry them', 'recovery_point = NULL'],
    ['once they are parked', `state = 'parked'`],
    ['once they are completed', `state = 'completed', completed_at = now(), status_code = 0`],
    ['without a request, which older code claimed', 'request = NULL'],
    ['of another method', 'method = 2'],
    ['so soon after several attempts', 'attempt = 3, lease_until = now() - 39000 * interval $$1 millisecond$$'],
  ])('are not found %s', async (_, set) => {
    const request = await halfFinished(11_000);
    expect(await found()).toEqual([request.key.text]);
    await change(request, set);
    expect(await found()).toEqual([]);
  });

  it('wait twice as long after each attempt, and never longer than the longest wait', async () => {
    const request = await halfFinished(41_000);
    await change(request, 'attempt = 3');
    expect(await found()).toEqual([request.key.text]);
    await change(request, 'attempt = 2000000000');
    expect(await found()).toEqual([]);
    expect(await found({ longestWaitMs: 40_000 })).toEqual([request.key.text]);
  });

  it('are found oldest first, in every day, and no more than asked for', async () => {
    const dated = await halfFinished(11_000, { requestId: datedKey(Date.now()) });
    const undated = await halfFinished(11_000);
    const last = await halfFinished(60_000);
    expect(await found()).toEqual([dated, undated, last].map(({ key }) => key.text));
    expect(await found({ limit: 2 })).toEqual([dated, undated].map(({ key }) => key.text));
    expect(await found({ paths: [] })).toEqual([]);
    expect(await found({ paths: ['/nobody.Knows/It'] })).toEqual([]);
  });

  it.each([false, true])(
    'are found by the index of open requests, however many records there are',
    async (analyzed) => {
      await opened.database.rows(`
      INSERT INTO idempotency_record (created_at, lease_until, bucket, attempt, method, id, owner_token, state,
        fingerprint, scope, request_id, instance, recovery_point)
      SELECT now(), now(), '1970-01-01', 1, 1, gen_random_uuid(), gen_random_uuid(), 'claimed', '\\x0102', 'account-1',
        gen_random_uuid()::text, 'process-1', 'draft'
      FROM generate_series(1, 3000)`);
      await halfFinished(11_000);
      if (analyzed) await opened.database.rows('ANALYZE idempotency_record');
      const plans = [
        await opened.database.rows(`EXPLAIN ${SELECT_HALF_FINISHED}`, ['["1"]', 10_000, 3_600_000, 10]),
        await opened.database.rows(`EXPLAIN ${COUNT_STRANDED}`, ['["1"]', 10_000]),
      ].map((rows) => JSON.stringify(rows));
      for (const plan of plans) {
        expect(plan).toContain('idempotency_record_undated_method_created_at_idx');
        expect(plan).not.toContain('Seq Scan on idempotency_record_undated');
      }
    },
  );
});

describe('taking a half-finished request over', () => {
  it('gives one owner the claim with what is stored, and all others nothing', async () => {
    const request = await halfFinished(0);
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, async (_, n) =>
        (await opened.open({ instance: `n${n}` })).takeOverHalfFinished(request),
      ),
    );
    const granted = outcomes.filter(({ kind }) => kind === 'granted');
    expect(granted).toEqual([
      expect.objectContaining({
        takeover: true,
        claim: expect.objectContaining({ attempt: 2, results: Buffer.from('[]') }) as unknown,
      }),
    ]);
    expect(outcomes.filter(({ kind }) => kind === 'in_progress')).toHaveLength(4);
  });

  it('makes no record where there is none any more', async () => {
    expect(await opened.store.takeOverHalfFinished(resumable())).toEqual({ kind: 'absent' });
    expect(await opened.database.count('idempotency_record')).toBe(0);
  });

  it('leaves alone what has no step: its key was given back and claimed anew', async () => {
    const request = await halfFinished(0);
    await change(request, 'recovery_point = NULL');
    expect(await opened.store.takeOverHalfFinished(request)).toEqual({ kind: 'absent' });
    expect(await opened.record(request)).toMatchObject({ attempt: 1 });
  });

  it('leaves alone what runs, what is answered and what is another request', async () => {
    const request = await halfFinished(0);
    const other = { ...request, fingerprint: claimRequest({ orderId: 'another' }).fingerprint };
    expect(await opened.store.takeOverHalfFinished(other)).toEqual({ kind: 'mismatch' });
    const mine = held((await opened.store.takeOverHalfFinished(request)) as never);
    expect(await opened.store.takeOverHalfFinished(request)).toMatchObject({ kind: 'in_progress' });
    await complete(opened.store, mine, answerOf('done'));
    expect(await opened.store.takeOverHalfFinished(request)).toMatchObject({ kind: 'completed' });
  });

  it('parks what was tried too often', async () => {
    const request = await halfFinished(0);
    await change(request, 'attempt = 10');
    expect(await opened.store.takeOverHalfFinished(request)).toEqual({ kind: 'parked', now: true });
    expect(await storedRequest(request)).toEqual(MESSAGE);
  });

  it('never throws', async () => {
    const store = await opened.open({
      records: {
        $queryRawUnsafe: (text, ...values) =>
          text.includes('ownerToken')
            ? Promise.reject(new Error('away'))
            : opened.connections.store.$queryRawUnsafe(text, ...values),
      },
    });
    expect(await store.takeOverHalfFinished(resumable())).toMatchObject({ kind: 'unavailable' });
  });
});

describe('requests that are stranded', () => {
  const stranded = (paths: readonly string[] = []) => opened.store.countStranded(paths, 7_200_000);

  it('are counted by method, where nobody resumed them for long', async () => {
    await halfFinished(7_201_000);
    await halfFinished(7_201_000);
    expect(await stranded()).toEqual([{ path: CREATE.path, records: 2 }]);
  });

  it.each([
    ['soon after their lease', 'lease_until = now() - 7199000 * interval $$1 millisecond$$'],
    ['once they are parked', `state = 'parked'`],
    ['without a step', 'recovery_point = NULL'],
    ['without a request', 'request = NULL'],
  ])('are not counted %s', async (_, set) => {
    await change(await halfFinished(7_201_000), set);
    expect(await stranded()).toEqual([]);
  });

  it('are not those of the methods that are resumed', async () => {
    await halfFinished(7_201_000);
    expect(await stranded([CREATE.path])).toEqual([]);
  });
});

describe('a half-finished request is never given back (design 4.8)', () => {
  it('by a release, which ends its lease instead and takes the token away', async () => {
    const request = await halfFinished(-60_000);
    const row = await opened.record(request);
    const mine = { bucket: request.key.bucket, id: idOf(request), attempt: 1, expiresAt: new Date() };
    expect(await opened.store.releaseIfHeld({ ...mine, ownerToken: randomUUID() })).toBe(false);
    expect(await opened.record(request)).toEqual(row);

    expect(await opened.store.releaseIfHeld({ ...mine, ownerToken: row?.owner_token ?? '' })).toBe(true);

    const after = await opened.record(request);
    expect(after).toMatchObject({ state: 'claimed', attempt: 1 });
    expect(after?.owner_token).not.toBe(row?.owner_token);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', takeover: true });
  });
});
