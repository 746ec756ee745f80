import { connect } from '../../src/database/connect';
import { openPostgresStore, type RetentionOptions, runRetention } from '../../src/idempotency/index';
import type { Prisma } from '../../src/gen/prisma/client';
import { SELECT_DAYS_TO_DROP } from '../../src/idempotency/store/sql/retention';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { daysAgo, droppedThrough, makeDay, requestOf, stagesOf, tableOf } from '../support/old-days';
import { setClock } from '../support/set-clock';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

const DAY_MS = 24 * 3_600_000;

/** A key is taken for a day, its record kept for another one: the third day before today is the youngest that goes. */
const POLICY = policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS, retentionMs: DAY_MS });
const YOUNGEST_DUE = 3;

describe('days that are over', () => {
  let opened: TestStore;
  let due: string;

  beforeEach(async () => {
    opened = await openTestStore([POLICY]);
    due = await daysAgo(opened.database, YOUNGEST_DUE);
    await makeDay(opened.database, due);
  });

  afterEach(async () => {
    jest.useRealTimers();
    await opened.close();
  });

  const run = (options: Partial<RetentionOptions<Prisma.TransactionClient>> = {}) =>
    runRetention({ client: opened.connections.maintenance, ...options });

  const nameOf = (day: string): Promise<readonly unknown[]> =>
    opened.database.rows(`SELECT 1 WHERE to_regclass($1) IS NOT NULL`, [tableOf(day)]);

  it('are dropped, and no other is; then their keys are expired and the days do not come back', async () => {
    const older = await daysAgo(opened.database, 30);
    const younger = await daysAgo(opened.database, YOUNGEST_DUE - 1);
    for (const day of [older, younger]) await makeDay(opened.database, day);
    const completed = requestOf(due);
    await complete(opened.store, await claim(opened.store, completed), answerOf('paid'));
    expect(await opened.store.claim(completed)).toMatchObject({ kind: 'completed' });

    const report = await run();

    expect(report).toMatchObject({ elected: true, dropped: [older, due], heldBack: [], kept: 0, faults: [] });
    expect(report.created).toHaveLength(9);
    expect(await droppedThrough(opened.database)).toBe(due);
    const stages = await stagesOf(opened.database);
    expect(Object.keys(stages)[0]).toBe(younger);
    expect(new Set(Object.values(stages))).toEqual(new Set(['attached']));
    expect(await opened.store.claim(completed)).toEqual({ kind: 'expired' });
    expect(await opened.store.claim(requestOf(younger))).toMatchObject({ kind: 'granted' });

    expect(await run()).toMatchObject({ created: [], dropped: [], faults: [] });
    expect(await stagesOf(opened.database)).toEqual(stages);
  });

  it('are those of this schema: a table of that name in another one says nothing of them', async () => {
    await opened.database.rows('CREATE SCHEMA other');
    await opened.database.rows(`CREATE TABLE other.${tableOf(due)} (LIKE idempotency_record)`);
    const rows = await opened.database.rows<{ day: string; stage: string }>(
      SELECT_DAYS_TO_DROP.replace('retention.dropped_through', `'${due}'::date`),
      [null],
    );

    expect(rows).toEqual([{ day: due, stage: 'attached' }]);
    expect(await run()).toMatchObject({ dropped: [due], heldBack: [], faults: [] });
    expect(await opened.database.count(`other.${tableOf(due)}`)).toBe(0);
  });

  it('wait for the longest promise of any method, one that this process does not know among them', async () => {
    await opened.database.rows(
      `INSERT INTO idempotency_method (path, retention_ms, max_key_age_ms) VALUES ('/other/Longer', $1, $2)`,
      [2 * DAY_MS, DAY_MS],
    );

    expect(await run()).toMatchObject({ dropped: [], faults: [] });
    expect(await stagesOf(opened.database)).toHaveProperty(due, 'attached');

    await opened.database.rows(`UPDATE idempotency_method SET retention_ms = 1 WHERE path = '/other/Longer'`);
    expect(await run()).toMatchObject({ dropped: [due] });
  });

  it('stay where the database knows no method: there is nothing to go by', async () => {
    await opened.database.rows('DELETE FROM idempotency_method');

    expect(await run()).toMatchObject({ dropped: [], faults: [] });
    expect(await stagesOf(opened.database)).toHaveProperty(due, 'attached');
    expect(await droppedThrough(opened.database)).toBe('1970-01-01');
  });

  it('once forgotten are never remembered: not by a process that keeps less, nor after promises were lengthened', async () => {
    const yesterday = await daysAgo(opened.database, 1);
    await opened.database.rows('UPDATE idempotency_retention SET dropped_through = $1', [yesterday]);
    await opened.database.rows('UPDATE idempotency_method SET retention_ms = 30 * retention_ms');

    expect((await run()).faults).toEqual([]);

    expect(await droppedThrough(opened.database)).toBe(yesterday);
  });

  it('are dropped by sessions of SERIALIZABLE too', async () => {
    const url = new URL(opened.database.connectionString);
    url.searchParams.set('options', '-c default_transaction_isolation=serializable');
    const strict = connect({ connectionString: url.href });
    const request = requestOf(due);
    await claim(opened.store, request);
    await opened.endLease(request);

    expect(await runRetention({ client: strict.maintenance })).toMatchObject({ dropped: [due], kept: 0, faults: [] });
    await strict.close();
  });

  it.each([-DAY_MS, DAY_MS])(
    'are told by the database: a process whose clock is %i ms off drops, revives and refuses the same',
    async (offMs) => {
      const younger = await daysAgo(opened.database, YOUNGEST_DUE - 1);
      await makeDay(opened.database, younger);
      setClock(Date.now() + offMs);

      expect(await run()).toMatchObject({ dropped: [due], faults: [] });

      expect(await opened.store.claim(requestOf(due))).toEqual({ kind: 'expired' });
      expect(await opened.store.claim(requestOf(younger))).toMatchObject({ kind: 'granted' });
      const [now] = await opened.database.rows<{ ms: number }>('SELECT extract(epoch FROM now())::float8 * 1000 AS ms');
      const fresh = claimRequest({ requestId: datedKey(Math.round(now?.ms ?? 0)) });
      expect(await opened.store.claim(fresh)).toMatchObject({ kind: 'granted' });
    },
  );

  it('are dropped by a process that serves no method, by the promises of the others', async () => {
    const { connectionString } = opened.database;
    const other = connect({ connectionString });
    await openPostgresStore({ business: other.transactions, records: other.store, policies: [] });
    const younger = await daysAgo(opened.database, YOUNGEST_DUE - 1);
    await makeDay(opened.database, younger);

    expect(await runRetention({ client: other.maintenance })).toMatchObject({ dropped: [due], faults: [] });
    expect(await stagesOf(opened.database)).toHaveProperty(younger, 'attached');
    await other.close();
  });

  it('are held back by a live lease: the attempt completes and replays, and the next round drops', async () => {
    const request = requestOf(due);
    const held = await claim(opened.store, request);

    expect(await run()).toMatchObject({ dropped: [], heldBack: [due], faults: [] });
    expect(await stagesOf(opened.database)).toHaveProperty(due, 'attached');
    expect(await complete(opened.store, held, answerOf('paid'))).toBe(true);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed', answer: answerOf('paid') });
    // A key without a record is not taken any more, though its day still stands.
    expect(await opened.store.claim(requestOf(due))).toEqual({ kind: 'expired' });

    expect(await run()).toMatchObject({ dropped: [due], heldBack: [] });
  });

  it('leave behind what is parked or half done, and nothing else', async () => {
    const requests = Array.from({ length: 4 }, () => requestOf(due));
    for (const request of requests) {
      await claim(opened.store, request);
      await opened.endLease(request);
    }
    const [parked, halfDone, completed, abandoned] = requests.map(({ key }) => key.text);
    await opened.database.rows(`UPDATE idempotency_record SET state = 'parked' WHERE request_id = $1`, [parked]);
    await opened.database.rows(
      `UPDATE idempotency_record SET recovery_point = 'draft', results = '\\x01' WHERE request_id = $1`,
      [halfDone],
    );
    await opened.database.rows(
      `UPDATE idempotency_record SET state = 'completed', completed_at = now(), status_code = 0, recovery_point = 'draft'
       WHERE request_id = $1`,
      [completed],
    );
    const before = await opened.database.rows(
      'SELECT * FROM idempotency_record WHERE request_id = ANY ($1) ORDER BY id',
      [[parked, halfDone]],
    );

    expect(await run()).toMatchObject({ dropped: [due], kept: 2, observation: { kept: 2 } });

    const kept = await opened.database.rows('SELECT * FROM idempotency_record_kept ORDER BY id');
    expect(kept.map(({ kept_at, ...record }) => ({ record, dated: kept_at instanceof Date }))).toEqual(
      before.map((record) => ({ record, dated: true })),
    );
    expect(await opened.database.count('idempotency_record')).toBe(0);
    expect(abandoned).toBeDefined();
    for (const request of requests) expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });
  });

  it('keep what they must in a table whose columns follow those of the records', async () => {
    const columnsOf = async (table: string) =>
      opened.database.rows(
        `SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
         WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
        [table],
      );
    const [keptAt, ...others] = await columnsOf('idempotency_record_kept');

    expect(keptAt).toMatchObject({ attname: 'kept_at' });
    expect(others).toEqual(await columnsOf('idempotency_record'));
  });

  describe('with an export', () => {
    it('go after it; it can read all that was in them', async () => {
      const request = requestOf(due);
      await complete(opened.store, await claim(opened.store, request), answerOf('paid'));
      const exported: unknown[] = [];

      const report = await run({
        exportDay: async ({ day, table }) => {
          exported.push(day, ...(await opened.database.rows(`SELECT request_id, state FROM ${table}`)));
        },
      });

      expect(exported).toEqual([due, { request_id: request.key.text, state: 'completed' }]);
      expect(report).toMatchObject({ dropped: [due], faults: [] });
    });

    it('stay while it fails, and come again', async () => {
      const failure = new Error('the archive is full');
      const report = await run({ exportDay: () => Promise.reject(failure) });

      expect(report).toMatchObject({
        dropped: [],
        faults: [{ step: 'drop_days', error: failure, missingRight: false }],
      });
      expect(report.observation).toBeDefined();
      expect(await nameOf(due)).toHaveLength(1);
      expect(await opened.store.claim(requestOf(due))).toEqual({ kind: 'expired' });

      expect(await run({ exportDay: () => Promise.resolve() })).toMatchObject({ dropped: [due], faults: [] });
      expect(await nameOf(due)).toHaveLength(0);
    });

    it('stay when another process has put them back meanwhile', async () => {
      const putBack = async (): Promise<void> => {
        await opened.database.rows(
          `ALTER TABLE idempotency_record ATTACH PARTITION ${tableOf(due)} FOR VALUES FROM ('${due}') TO ('${due}'::date + 1)`,
        );
      };

      expect(await run({ exportDay: putBack })).toMatchObject({ dropped: [], faults: [] });
      expect(await stagesOf(opened.database)).toHaveProperty(due, 'attached');
    });
  });

  it('are only dropped by sessions that do not wait for ever, and the rest of the round is done', async () => {
    const report = await run({ client: opened.connections.store });

    expect(report).toMatchObject({ dropped: [], faults: [{ step: 'drop_days' }] });
    expect(String(report.faults[0]?.error)).toContain('options=-c lock_timeout=2s');
    expect(report.created).toHaveLength(9);
    expect(report.observation).toBeDefined();
    expect(await droppedThrough(opened.database)).toBe('1970-01-01');
  });
});
