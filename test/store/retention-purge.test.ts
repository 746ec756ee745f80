import { connect } from '../../src/database/connect';
import { type RetentionEvent, runRetention } from '../../src/idempotency/index';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, policyOf } from '../support/claim-requests';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

const HOUR_MS = 3_600_000;
const SHORT = policyOf('CreatePayment', { retentionMs: HOUR_MS });
const LONG = policyOf('RefundPayment', { retentionMs: 10 * HOUR_MS });

describe('undated records whose retention is over', () => {
  let opened: TestStore;

  beforeEach(async () => {
    opened = await openTestStore([SHORT, LONG]);
  });

  afterEach(() => opened.close());

  const run = (options: Partial<Parameters<typeof runRetention>[0]> = {}) =>
    runRetention({ client: opened.connections.maintenance, ...options });

  /** A completed record that was claimed so long ago. */
  const completedAgo = async (ageMs: number, policy = SHORT): Promise<ClaimRequest> => {
    const request = claimRequest({ policy });
    await complete(opened.store, await claim(opened.store, request), answerOf('paid'));
    await age(request, ageMs);
    return request;
  };

  const age = (request: ClaimRequest, ageMs: number) =>
    opened.database.rows(
      `UPDATE idempotency_record SET created_at = now() - $1::float8 * interval '1 millisecond',
         lease_until = now() - $1::float8 * interval '1 millisecond' WHERE request_id = $2`,
      [ageMs, request.key.text],
    );

  const change = (request: ClaimRequest, assignments: string) =>
    opened.database.rows(`UPDATE idempotency_record SET ${assignments} WHERE request_id = $1`, [request.key.text]);

  const isThere = async (request: ClaimRequest): Promise<boolean> => (await opened.record(request)) !== undefined;

  it('go, each after the retention of its own method; a key that is used again then runs again (case I1)', async () => {
    const young = await completedAgo(HOUR_MS - 60_000);
    const old = await completedAgo(HOUR_MS + 60_000);
    const youngOfLong = await completedAgo(HOUR_MS + 60_000, LONG);
    const oldOfLong = await completedAgo(10 * HOUR_MS + 60_000, LONG);
    const events: RetentionEvent[] = [];

    const report = await run({ onEvent: (event) => events.push(event) });

    expect(report).toMatchObject({ purged: 2, faults: [] });
    expect(events.filter(({ type }) => type === 'purged')).toEqual([
      { type: 'purged', path: SHORT.path, records: 1 },
      { type: 'purged', path: LONG.path, records: 1 },
    ]);
    expect([await isThere(old), await isThere(oldOfLong)]).toEqual([false, false]);
    expect(await opened.store.claim(young)).toMatchObject({ kind: 'completed' });
    expect(await opened.store.claim(youngOfLong)).toMatchObject({ kind: 'completed' });
    expect(await opened.store.claim(old)).toMatchObject({ kind: 'granted', takeover: false });
  });

  it('go by the longest promise in the database, also in a process that knows no method or a shorter one', async () => {
    const kept = await completedAgo(HOUR_MS + 60_000);
    const other = connect({ connectionString: opened.database.connectionString });
    await opened.open();
    await opened.database.rows(`UPDATE idempotency_method SET retention_ms = $1 WHERE path = $2`, [
      2 * HOUR_MS,
      SHORT.path,
    ]);

    expect(await runRetention({ client: other.maintenance })).toMatchObject({ purged: 0, faults: [] });
    expect(await isThere(kept)).toBe(true);
    await other.close();
  });

  it('stay while they run, are parked or half done; a claim that was given up goes', async () => {
    const running = await completedAgo(2 * HOUR_MS);
    const parked = await completedAgo(2 * HOUR_MS);
    const halfDone = await completedAgo(2 * HOUR_MS);
    const abandoned = await completedAgo(2 * HOUR_MS);
    const withPoint = await completedAgo(2 * HOUR_MS);
    const tombstone = await completedAgo(2 * HOUR_MS);
    // Its retention is shorter than its lease was.
    const done = await completedAgo(2 * HOUR_MS);
    const unanswered = 'completed_at = NULL, status_code = NULL, response = NULL';
    await change(running, `state = 'claimed', ${unanswered}, lease_until = now() + interval '1 minute'`);
    await change(parked, `state = 'parked', ${unanswered}`);
    await change(halfDone, `state = 'claimed', ${unanswered}, recovery_point = 'draft', results = '\\x01'`);
    await change(abandoned, `state = 'claimed', ${unanswered}`);
    await change(withPoint, `recovery_point = 'draft'`);
    await change(tombstone, `state = 'expired'`);
    await change(done, `lease_until = now() + interval '1 minute'`);

    expect(await run()).toMatchObject({ purged: 4, faults: [] });

    for (const request of [running, parked, halfDone]) expect(await isThere(request)).toBe(true);
    for (const request of [abandoned, withPoint, tombstone, done]) expect(await isThere(request)).toBe(false);
  });

  it('go in batches, all of them, past those that must stay', async () => {
    const stays: ClaimRequest[] = [];
    for (let nth = 0; nth < 25; nth += 1) {
      const request = await completedAgo(3 * HOUR_MS - nth * 60_000);
      if (nth % 5 === 0) {
        await change(request, `state = 'parked', completed_at = NULL, status_code = NULL, response = NULL`);
        stays.push(request);
      }
    }
    const statements: unknown[] = [];
    const { maintenance } = opened.connections;
    const counting = {
      $transaction: maintenance.$transaction.bind(maintenance),
      $queryRawUnsafe: async (query: string, ...values: unknown[]) => {
        const rows = await maintenance.$queryRawUnsafe<{ count?: number }[]>(query, ...values);
        if (query.includes('DELETE')) statements.push(rows[0]?.count);
        return rows;
      },
    };

    const report = await run({ client: counting as unknown as typeof maintenance, purgeBatch: 8 });

    expect(report.purged).toBe(20);
    // The last one is of the other method.
    expect(statements).toEqual([8, 8, 4, 0]);
    expect(await opened.database.count('idempotency_record')).toBe(stays.length);
  });

  it('go oldest first where no index says so, since the next batch begins where the last one ended', async () => {
    const url = new URL(opened.database.connectionString);
    const settings = ['enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan'];
    url.searchParams.set('options', settings.map((name) => `-c ${name}=off`).join(' '));
    const unordered = connect({ connectionString: url.href });
    // The youngest lies first in the table.
    for (const hours of [2, 3, 4]) await completedAgo(hours * HOUR_MS);

    const report = await run({ client: unordered.maintenance, purgeBatch: 1 });

    await unordered.close();
    expect(report).toMatchObject({ purged: 3, faults: [] });
  });

  it('that somebody has in hand are left, without waiting for them', async () => {
    const inHand = await completedAgo(2 * HOUR_MS);
    await completedAgo(2 * HOUR_MS);
    const other = await opened.database.pool.connect();
    await other.query('BEGIN');
    await other.query('SELECT FROM idempotency_record WHERE request_id = $1 FOR UPDATE', [inHand.key.text]);

    expect(await run()).toMatchObject({ purged: 1, faults: [] });

    await other.query('ROLLBACK');
    other.release();
    expect(await run()).toMatchObject({ purged: 1 });
  });

  it('are judged by what they are when their turn comes: one that is taken over just then stays', async () => {
    const request = claimRequest({ policy: SHORT });
    await claim(opened.store, request);
    await age(request, 2 * HOUR_MS);

    // Taken over between the look and the deletion: the row is changed by an earlier step of the same round.
    const { maintenance } = opened.connections;
    const late = {
      $transaction: maintenance.$transaction.bind(maintenance),
      $queryRawUnsafe: async (query: string, ...values: unknown[]) => {
        if (query.includes('DELETE')) await opened.store.claim(request);
        return maintenance.$queryRawUnsafe(query, ...values);
      },
    };

    expect(await run({ client: late as unknown as typeof maintenance })).toMatchObject({ purged: 0 });
    expect(await opened.record(request)).toMatchObject({ state: 'claimed', attempt: 2 });
  });

  it('are tried again where a session of REPEATABLE READ was told to', async () => {
    await completedAgo(2 * HOUR_MS);
    const { maintenance } = opened.connections;
    let refusals = 0;
    const refusing = {
      $transaction: maintenance.$transaction.bind(maintenance),
      $queryRawUnsafe: async (query: string, ...values: unknown[]) => {
        if (query.includes('DELETE') && refusals < 2) {
          refusals += 1;
          throw Object.assign(new Error(), { meta: { driverAdapterError: { cause: { originalCode: '40001' } } } });
        }
        return maintenance.$queryRawUnsafe(query, ...values);
      },
    };

    expect(await run({ client: refusing as unknown as typeof maintenance })).toMatchObject({ purged: 1, faults: [] });
    expect(refusals).toBe(2);
  });

  it('go in sessions of REPEATABLE READ too', async () => {
    const url = new URL(opened.database.connectionString);
    url.searchParams.set('options', '-c default_transaction_isolation=repeatable\\ read');
    const strict = connect({ connectionString: url.href });
    await completedAgo(2 * HOUR_MS);

    const report = await runRetention({ client: strict.maintenance });

    expect(report).toMatchObject({ elected: true, purged: 1, faults: [] });
    expect(report.created).not.toEqual([]);
    await strict.close();
  });
});
