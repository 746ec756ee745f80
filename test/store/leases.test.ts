import type { PoolClient } from 'pg';
import type { SqlClient } from '../../src/idempotency/index';
import { RENEW_IF_HELD } from '../../src/idempotency/store/sql/lease';
import type { ClaimRequest, HeldClaim } from '../../src/idempotency/store/store';
import { claimRequest, policyOf } from '../support/claim-requests';
import { answerOf, claim, complete, held, idOf, openTestStore, type TestStore } from '../support/store';

const LEASE_MS = 60_000;
const POLICY = policyOf('CreatePayment', { leaseMs: 10_000 });

describe('the leases of a store (design 4.7)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  const claimed = async (): Promise<{ readonly request: ClaimRequest; readonly held: HeldClaim }> => {
    const request = claimRequest({ policy: POLICY });
    return { request, held: await claim(opened.store, request) };
  };

  const renew = (...claims: readonly HeldClaim[]) =>
    opened.store.renewIfHeld(claims.map((one) => ({ claim: one, leaseMs: LEASE_MS })));

  const leaseLeftMs = async ({ key }: ClaimRequest): Promise<number> => {
    const [row] = await opened.database.rows<{ left: number }>(
      'SELECT extract(epoch FROM lease_until - now())::float8 * 1000 AS left FROM idempotency_record WHERE request_id = $1',
      [key.text],
    );
    return row?.left ?? NaN;
  };

  /** Runs while another transaction has the row in hand, as a completion at its COMMIT has. */
  const whileInHand = async <Result>(request: ClaimRequest, work: (keeper: PoolClient) => Promise<Result>) => {
    const keeper = await opened.database.pool.connect();
    await keeper.query('BEGIN');
    try {
      await keeper.query('SELECT FROM idempotency_record WHERE bucket = $1 AND id = $2 FOR UPDATE', [
        request.key.bucket,
        idOf(request),
      ]);
      return await work(keeper);
    } finally {
      await keeper.query('ROLLBACK');
      keeper.release();
    }
  };

  describe('a renewal', () => {
    it('prolongs from now on by the clock of the database, what was given and nothing else', async () => {
      const [one, other, neighbour] = [await claimed(), await claimed(), await claimed()];

      expect(await renew(one.held, other.held)).toEqual(['renewed', 'renewed']);

      for (const { request } of [one, other]) {
        expect(await leaseLeftMs(request)).toBeGreaterThan(LEASE_MS - 5_000);
        expect(await leaseLeftMs(request)).toBeLessThanOrEqual(LEASE_MS);
        expect(await opened.record(request)).toMatchObject({ state: 'claimed', attempt: 1 });
      }
      expect(await leaseLeftMs(neighbour.request)).toBeLessThanOrEqual(10_000);
    });

    it('gives each lease its own length', async () => {
      const [long, short] = [await claimed(), await claimed()];
      await opened.store.renewIfHeld([
        { claim: long.held, leaseMs: 90_000 },
        { claim: short.held, leaseMs: 20_000 },
      ]);
      expect(Math.round((await leaseLeftMs(long.request)) / 10_000)).toBe(9);
      expect(Math.round((await leaseLeftMs(short.request)) / 10_000)).toBe(2);
    });

    it('of hundreds is one statement', async () => {
      const claims = await Promise.all(Array.from({ length: 300 }, async () => (await claimed()).held));
      let statements = 0;
      const records: SqlClient = {
        $queryRawUnsafe: (query, ...values) => {
          statements += 1;
          return opened.connections.store.$queryRawUnsafe(query, ...values);
        },
      };
      const store = await opened.open({ records });
      statements = 0;

      const results = await store.renewIfHeld(claims.map((one) => ({ claim: one, leaseMs: LEASE_MS })));

      expect(results).toEqual(Array(300).fill('renewed'));
      expect(statements).toBe(1);
    });

    it('by the token of an owner that was overtaken renews nothing, and the others all the same (case C1)', async () => {
      const [overtaken, other] = [await claimed(), await claimed()];
      await opened.endLease(overtaken.request);
      await claim(opened.store, overtaken.request);

      expect(await renew(overtaken.held, other.held)).toEqual(['lost', 'renewed']);

      expect(await leaseLeftMs(overtaken.request)).toBeLessThanOrEqual(10_000);
    });

    it('revives a lease that is over, as long as nobody has taken it', async () => {
      const { request, held: mine } = await claimed();
      await opened.endLease(request);

      expect(await renew(mine)).toEqual(['renewed']);
      expect(await opened.store.claim(request)).toMatchObject({ kind: 'in_progress' });
    });

    it('revives none that was ended on purpose', async () => {
      const { request, held: mine } = await claimed();
      expect(await opened.store.endLeasesIfHeld([mine])).toBe(1);

      expect(await renew(mine)).toEqual(['lost']);
      expect(await leaseLeftMs(request)).toBeLessThanOrEqual(0);
    });

    it('touches no record that is completed, and brings back none that was released', async () => {
      const [done, released] = [await claimed(), await claimed()];
      await complete(opened.store, done.held, answerOf('done'));
      await opened.store.releaseIfHeld(released.held);

      expect(await renew(done.held, released.held)).toEqual(['lost', 'lost']);

      expect(await opened.record(done.request)).toMatchObject({ state: 'completed', lease_ms: 10_000 });
      expect(await opened.record(released.request)).toBeUndefined();
    });

    it('of a row that somebody has in hand is busy, not lost, and holds no other up', async () => {
      const [inHand, other] = [await claimed(), await claimed()];

      // A statement that waited for the row would be here until the end of the test.
      const results = await whileInHand(inHand.request, () => renew(inHand.held, other.held));

      expect(results).toEqual(['busy', 'renewed']);
      expect(await leaseLeftMs(inHand.request)).toBeLessThanOrEqual(10_000);
      expect(await renew(inHand.held)).toEqual(['renewed']);
    });

    it('of a row that somebody else holds and has in hand is lost', async () => {
      const { request, held: mine } = await claimed();
      await opened.endLease(request);
      await claim(opened.store, request);

      expect(await whileInHand(request, () => renew(mine))).toEqual(['lost']);
    });

    it('and a takeover of the same moment exclude each other, whoever comes first', async () => {
      for (let round = 0; round < 40; round += 1) {
        const { request, held: mine } = await claimed();
        await opened.endLease(request);

        const [[renewed], taken] = await Promise.all([renew(mine), opened.store.claim(request)]);

        const record = await opened.record(request);
        const won = taken.kind === 'granted' ? held(taken) : mine;
        expect(record).toMatchObject({ owner_token: won.ownerToken, attempt: won.attempt });
        if (taken.kind !== 'granted') expect(renewed).not.toBe('lost');
        expect(await complete(opened.store, mine, answerOf('late'))).toBe(won === mine);
      }
    });

    it('rejects where the store can not be asked', async () => {
      const records: SqlClient = {
        $queryRawUnsafe: (query, ...values) =>
          query === RENEW_IF_HELD
            ? Promise.reject(new Error('away'))
            : opened.connections.store.$queryRawUnsafe(query, ...values),
      };
      const store = await opened.open({ records });
      const { held: mine } = await claimed();

      await expect(store.renewIfHeld([{ claim: mine, leaseMs: LEASE_MS }])).rejects.toThrow('away');
    });
  });

  describe('leases that are ended', () => {
    it('leave the key to whoever comes next, at once', async () => {
      const [one, other] = [await claimed(), await claimed()];
      expect(await opened.store.endLeasesIfHeld([one.held, other.held])).toBe(2);

      for (const { request } of [one, other]) {
        expect(await opened.store.claim(request)).toMatchObject({
          ...{ kind: 'granted', takeover: true, claim: { attempt: 2 } },
        });
      }
    });

    it('leave nothing to their owner: no completion, release or publication of it changes anything', async () => {
      const { request, held: mine } = await claimed();
      await opened.store.endLeasesIfHeld([mine]);
      const before = await opened.record(request);

      expect(await complete(opened.store, mine, answerOf('late'))).toBe(false);
      expect(await opened.store.releaseIfHeld(mine)).toBe(false);
      expect(await opened.store.publishIfHeld(mine, 'payments/late')).toBe(false);
      expect(await opened.record(request)).toEqual(before);
    });

    it('are those of the tokens given: another owner goes on, and what is done stays done', async () => {
      const [overtaken, done] = [await claimed(), await claimed()];
      await opened.endLease(overtaken.request);
      const owner = await claim(opened.store, overtaken.request);
      await complete(opened.store, done.held, answerOf('done'));

      expect(await opened.store.endLeasesIfHeld([overtaken.held, done.held])).toBe(0);

      expect(await opened.record(overtaken.request)).toMatchObject({ owner_token: owner.ownerToken });
      expect(await opened.store.claim(done.request)).toMatchObject({ kind: 'completed' });
    });

    it('are not those of rows that are being completed just now, and wait for none of them', async () => {
      const [inHand, other] = [await claimed(), await claimed()];

      const ended = await whileInHand(inHand.request, () => opened.store.endLeasesIfHeld([inHand.held, other.held]));

      expect(ended).toBe(1);
      expect(await opened.record(inHand.request)).toMatchObject({ owner_token: inHand.held.ownerToken });
    });
  });
});
