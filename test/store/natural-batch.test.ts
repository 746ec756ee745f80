import { randomUUID } from 'node:crypto';
import { connect } from '../../src/database/connect';
import { createDays, type SqlClient } from '../../src/idempotency/index';
import { INSERT_CLAIM, INSERT_CLAIMS } from '../../src/idempotency/store/sql/claim';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { answerOf, claim, complete, idOf, openTestStore, type PaymentsStore, type TestStore } from '../support/store';
import { until } from '../support/until';

const POLICY = policyOf('CreatePayment');
const DAY_MS = 24 * 3_600_000;

describe('claims that come together (design 4.6)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
  });

  afterAll(() => opened.close());

  const request = (change: Parameters<typeof claimRequest>[0] = {}): ClaimRequest =>
    claimRequest({ policy: POLICY, ...change });

  /** A store that tells what its statements were. */
  const openCounted = async (
    client: SqlClient = opened.connections.store,
  ): Promise<{ readonly store: PaymentsStore; readonly statements: string[] }> => {
    const statements: string[] = [];
    const records: SqlClient = {
      $queryRawUnsafe: (query, ...values) => {
        statements.push(query);
        return client.$queryRawUnsafe(query, ...values);
      },
    };
    return { store: await opened.open({ records }), statements };
  };

  const countOf = (statements: readonly string[], statement: string): number =>
    statements.filter((one) => one === statement).length;

  it('go out in a few statements, each record as if it were alone', async () => {
    const { store, statements } = await openCounted();
    const requests = Array.from({ length: 128 }, () => request());

    const outcomes = await Promise.all(requests.map((one) => store.claim(one)));

    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ kind: 'granted', takeover: false, claim: { attempt: 1 } });
    }
    expect(countOf(statements, INSERT_CLAIM) + countOf(statements, INSERT_CLAIMS)).toBeLessThanOrEqual(10);
    const alone = request();
    const claimedAlone = await claim(opened.store, alone);
    const [one] = requests.slice(-1);
    if (one === undefined) throw new Error('no request');
    const recorded = await opened.database.rows<Record<string, unknown>>(
      `SELECT bucket, attempt, method, state, fingerprint, scope, instance, lease_until - created_at AS lease
       FROM idempotency_record WHERE request_id = ANY ($1)`,
      [[one.key.text, alone.key.text]],
    );
    expect(recorded).toHaveLength(2);
    expect(recorded[0]).toEqual(recorded[1]);
    expect(claimedAlone.expiresAt.getTime()).toBeGreaterThan(Date.now());
  });

  /** One request of each kind that a claim can meet; the same kinds each time, with keys of their own. */
  const everyKind = async (): Promise<readonly (readonly [string, ClaimRequest])[]> => {
    const nowMs = Date.now();
    const dated = request({ requestId: datedKey(nowMs) });
    const [running, done, orphaned, keyAtDone] = [request(), request(), request(), randomUUID()];
    await claim(opened.store, running);
    await complete(opened.store, await claim(opened.store, done), answerOf('done'));
    await claim(opened.store, orphaned);
    await opened.endLease(orphaned);
    const other = request({ requestId: keyAtDone });
    await complete(opened.store, await claim(opened.store, other), answerOf('other'));
    return [
      ['granted', request()],
      ['granted', dated],
      ['granted', request({ requestId: running.key.text, scope: 'account-2' })],
      ['in_progress', running],
      ['mismatch', request({ requestId: running.key.text, orderId: 'order-2' })],
      ['completed', done],
      ['mismatch', request({ requestId: keyAtDone, orderId: 'order-2' })],
      ['granted by takeover', orphaned],
      ['from_future', request({ requestId: datedKey(nowMs + DAY_MS / 4) })],
      ['from_future', request({ requestId: 'ffffffff-ffff-7fff-bfff-fffffffffff0' })],
      ['expired', request({ requestId: datedKey(nowMs - POLICY.maxKeyAgeMs - DAY_MS / 4) })],
      ['expired', request({ requestId: datedKey(nowMs - 300 * DAY_MS) })],
      ['expired', request({ requestId: '00000000-0000-7000-8000-000000000001' })],
    ];
  };

  const kindsOf = (store: PaymentsStore, requests: readonly ClaimRequest[]): Promise<readonly string[]> =>
    Promise.all(
      requests.map(async (one) => {
        const outcome = await store.claim(one);
        return outcome.kind === 'granted' && outcome.takeover ? 'granted by takeover' : outcome.kind;
      }),
    );

  it('have the outcomes that each would have alone, whatever is among them: 64 at once', async () => {
    const { store, statements } = await openCounted();
    const expected = (await everyKind()).map(([kind]) => kind);
    const mixed = (await Promise.all(Array.from({ length: 5 }, everyKind))).flat();
    const alone: string[] = [];
    for (const [, one] of await everyKind()) alone.push(...(await kindsOf(opened.store, [one])));
    statements.length = 0;

    const together = await kindsOf(
      store,
      mixed.map(([, one]) => one),
    );

    expect(alone).toEqual(expected);
    expect(mixed.length).toBeGreaterThanOrEqual(64);
    expect(together).toEqual(mixed.map(([kind]) => kind));
    expect(countOf(statements, INSERT_CLAIMS)).toBeGreaterThan(0);
    expect(countOf(statements, INSERT_CLAIM)).toBeLessThanOrEqual(2);
  });

  it('give a key to one of those that want it in the same statement, and judge the others by that one', async () => {
    const { store, statements } = await openCounted();
    const keys = Array.from({ length: 20 }, () => randomUUID());

    const kinds = await kindsOf(
      store,
      keys.flatMap((requestId) => [
        request({ requestId }),
        request({ requestId }),
        request({ requestId, orderId: 'order-2' }),
      ]),
    );

    for (const index of keys.keys()) {
      const [first, second, other] = kinds.slice(3 * index, 3 * index + 3);
      if (other === 'granted') expect([first, second]).toEqual(['mismatch', 'mismatch']);
      else expect([first, second].sort().concat(other ?? '')).toEqual(['granted', 'in_progress', 'mismatch']);
    }
    expect(countOf(statements, INSERT_CLAIM)).toBeLessThanOrEqual(2);
  });

  it('respect the days that were dropped', async () => {
    const requests = Array.from({ length: 20 }, () => request({ requestId: datedKey(Date.now()) }));
    await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = now()::date`);
    try {
      expect(new Set(await kindsOf(opened.store, requests))).toEqual(new Set(['expired']));
    } finally {
      await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = '2000-01-01'`);
    }
  });

  it.each([
    ['a zero byte, which no text of Postgres holds', 'account-\u0000'],
    ['half a character', 'account-\ud800'],
  ])('suffer no fault of one of them: a scope with %s', async (_, scope) => {
    // Where SERIALIZABLE is the default, any of them may be chosen to be run again, which would count.
    const url = new URL(opened.database.connectionString);
    url.searchParams.set('options', '-c default_transaction_isolation=read\\ committed');
    const plain = connect({ connectionString: url.href });
    const { store, statements } = await openCounted(plain.store);
    const others = Array.from({ length: 20 }, () => request());
    const first = request();
    const atFault = request({ scope });

    const outcomes = await kindsOf(store, [first, ...others.slice(0, 10), atFault, ...others.slice(10)]);
    await plain.close();

    expect(outcomes.filter((kind) => kind === 'granted').length).toBeGreaterThanOrEqual(21);
    expect(outcomes[0]).toBe('granted');
    // Alone, it is told what it would have been told anyway.
    expect(outcomes[11]).toBe(scope.endsWith('\u0000') ? 'unavailable' : 'granted');
    expect(countOf(statements, INSERT_CLAIMS)).toBe(1);
    expect(countOf(statements, INSERT_CLAIM)).toBe(22);
  });

  it('are held up by no other for longer than its patience', async () => {
    const { store } = await openCounted();
    const stuck = request();
    const keeper = await opened.database.pool.connect();
    await keeper.query('BEGIN');
    try {
      // A claim of another process that has not committed: whoever inserts the same key waits for it.
      await keeper.query(
        `INSERT INTO idempotency_record
           (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id, instance)
         SELECT now(), now(), $1::date, 1, min(id), $2::uuid, gen_random_uuid(), 'claimed', $5, $3, $4, 'elsewhere'
         FROM idempotency_method`,
        [stuck.key.bucket, idOf(stuck), stuck.scope, stuck.key.text, stuck.fingerprint],
      );
      const waiting = store.claim(stuck);
      await until('its statement waits', async () => {
        const waiters = `pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO idempotency_record%'
          AND datname = current_database()`;
        return (await opened.database.count(waiters)) > 0;
      });
      const startedAtMs = performance.now();
      for (let round = 0; round < 8; round += 1) await claim(store, request());
      // The statement that is held up waits for two seconds.
      expect(performance.now() - startedAtMs).toBeLessThan(1_900);
      expect(await waiting).toMatchObject({ kind: 'in_progress', leaseLeftMs: 0 });
    } finally {
      await keeper.query('ROLLBACK');
      keeper.release();
    }
    await claim(store, stuck);
  });

  it('of two processes never wait for each other in a circle, in whatever order they come', async () => {
    const other = connect({ connectionString: opened.database.connectionString });
    const stores = [opened.store, await opened.open({ records: other.store, instance: 'process-2' })];
    const deadlocks = async (): Promise<number> => {
      const [row] = await opened.database.rows<{ deadlocks: number }>(
        `SELECT pg_stat_force_next_flush(), deadlocks::int FROM pg_stat_database WHERE datname = current_database()`,
      );
      return row?.deadlocks ?? NaN;
    };
    const before = await deadlocks();
    // Each row takes a moment, so that the statements of both are under way together, whatever the machine does.
    await opened.database.rows(`
      CREATE FUNCTION take_a_moment() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END $$;
      CREATE TRIGGER take_a_moment BEFORE INSERT ON idempotency_record_undated
      FOR EACH ROW EXECUTE FUNCTION take_a_moment()`);
    try {
      for (let round = 0; round < 8; round += 1) {
        const requests = Array.from({ length: 60 }, () => request());
        const claims = [requests, [...requests].reverse()].map((ordered, index) =>
          kindsOf(stores[index] ?? opened.store, ordered),
        );
        const kinds = (await Promise.all(claims)).flat();
        expect(kinds.filter((kind) => kind === 'granted')).toHaveLength(60);
        expect(kinds.filter((kind) => kind === 'in_progress')).toHaveLength(60);
      }
    } finally {
      await opened.database.rows('DROP FUNCTION take_a_moment CASCADE');
      await other.close();
    }
    expect(await deadlocks()).toBe(before);
  });
});
