import { setTimeout as delay } from 'node:timers/promises';
import { createDays, type SqlClient } from '../../src/idempotency/index';
import { TAKE_OVER_IF_EXPIRED } from '../../src/idempotency/store/sql/claim';
import { TAKE_TOKEN_AWAY_IF_HELD } from '../../src/idempotency/store/sql/settle';
import { claimRequest, datedKey } from '../support/claim-requests';
import { connectionTerminated } from '../support/database-errors';
import { claim, idOf, openTestStore, type TestStore } from '../support/store';

describe('what a look-up tells, and what a claim makes of it', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
  });

  afterAll(() => opened.close());

  const set = (request: ReturnType<typeof claimRequest>, change: string): Promise<unknown> =>
    opened.database.rows(`UPDATE idempotency_record SET ${change} WHERE id = $1`, [idOf(request)]);

  it('an undated key without a record is unknown, never too old', async () => {
    expect(await opened.store.lookUpStatus(claimRequest())).toEqual({ kind: 'unknown' });
  });

  it('a lease that ended long ago has nothing left, and not less', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await set(request, `lease_until = now() - interval '1 hour'`);
    expect(await opened.store.lookUp(request)).toMatchObject({ kind: 'claimed', leaseLeftMs: 0 });
  });

  it('a takeover is tried twice where somebody has the row in hand, and not until he lets it go', async () => {
    let tried = 0;
    const records: SqlClient = {
      $queryRawUnsafe: <Rows>(query: string, ...values: unknown[]) => {
        if (query === TAKE_OVER_IF_EXPIRED) tried += 1;
        return opened.connections.store.$queryRawUnsafe<Rows>(query, ...values);
      },
    };
    const store = await opened.open({ records });
    const request = claimRequest();
    await claim(opened.store, request);
    await opened.endLease(request);
    const other = await opened.database.pool.connect();
    await other.query('BEGIN');
    try {
      await other.query('SELECT FROM idempotency_record WHERE id = $1 FOR UPDATE', [idOf(request)]);
      expect(await store.claim(request)).toMatchObject({ kind: 'in_progress', leaseLeftMs: 0 });
      expect(tried).toBe(2);
    } finally {
      await other.query('ROLLBACK');
      other.release();
    }
  });

  it('a settlement that was given up asks no more (design 4.8)', async () => {
    let asked = 0;
    const records: SqlClient = {
      $queryRawUnsafe: <Rows>(query: string, ...values: unknown[]) => {
        if (query !== TAKE_TOKEN_AWAY_IF_HELD) return opened.connections.store.$queryRawUnsafe<Rows>(query, ...values);
        asked += 1;
        return Promise.reject(connectionTerminated());
      },
    };
    const store = await opened.open({ records });
    const request = claimRequest();
    const claimed = await claim(opened.store, request);

    expect(await store.settle(request, claimed, 200)).toMatchObject({ kind: 'unsettled' });
    const before = asked;
    // Longer than the longest pause between two tries.
    await delay(900);
    expect(asked).toBe(before);
  });

  it('only what is half finished is parked, and only after its last attempt (design 4.10)', async () => {
    const request = claimRequest();
    await claim(opened.store, request);

    await set(request, 'lease_until = now(), attempt = 12');
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', claim: { attempt: 13 } });
    await set(request, `lease_until = now(), attempt = 9, recovery_point = 'draft', results = '\\x5b5d'`);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', claim: { attempt: 10 } });
    await set(request, 'lease_until = now()');
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'parked' });
  });

  it.each([
    ['parked at once where it is undated: the other side may have forgotten the keys of its effects', {}, 'parked'],
    ['resumed where it is dated: it goes with its day', { requestId: datedKey(Date.now()) }, 'granted'],
  ])('what is half finished for longer than its key is kept is %s (design 4.10)', async (_, options, kind) => {
    const request = claimRequest(options);
    await claim(opened.store, request);
    const begun = `lease_until = now(), recovery_point = 'charge#begun', results = '\\x5b5d'`;
    const { retentionMs } = request.policy;
    await set(request, `${begun}, created_at = now() - ${retentionMs - 60_000} * interval '1 millisecond'`);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted' });
    await set(request, `${begun}, created_at = now() - ${retentionMs + 1} * interval '1 millisecond'`);
    expect(await opened.store.claim(request)).toMatchObject({ kind });
  });

  it('what is claimed and has no step runs, however old it is', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await set(request, `lease_until = now(), created_at = now() - interval '99 days'`);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', takeover: true });
  });
});
