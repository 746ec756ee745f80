import { connect } from '../../src/database/connect';
import { createDays, createDaysIfAllowed, type RetentionEvent, type SqlClient } from '../../src/idempotency/index';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { claim, openTestStore, type TestStore } from '../support/store';

const DAY_MS = 24 * 3_600_000;

describe('the days that are created ahead', () => {
  let opened: TestStore;

  beforeEach(async () => {
    // One second short of a day: a series of days that starts at that time of day ends before the last one.
    opened = await openTestStore([policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS - 1_000 })]);
  });

  afterEach(() => opened.close());

  const dayTables = async (): Promise<readonly { day: string; options: string[] | null }[]> =>
    opened.database.rows<{ day: string; options: string[] | null }>(`
      SELECT substring(relname from 'd(\\d{8})$') AS day, reloptions AS options
      FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
      WHERE inhparent = 'idempotency_record'::regclass AND relname ~ 'd\\d{8}$' ORDER BY relname`);

  const expectedDays = async (): Promise<string[]> => {
    const rows = await opened.database.rows<{ day: string }>(`
      SELECT to_char(day, 'YYYYMMDD') AS day
      FROM generate_series(
        ((now() - interval '23 hours 59 minutes 59 seconds') AT TIME ZONE 'UTC')::date,
        (now() AT TIME ZONE 'UTC')::date + 7, interval '1 day') AS day`);
    return rows.map(({ day }) => day);
  };

  it('reach from the oldest date that is still taken to a week ahead, half filled', async () => {
    const made = await createDays(opened.connections.store);

    const tables = await dayTables();
    expect(tables.map(({ day }) => day)).toEqual(await expectedDays());
    expect(made.map((day) => day.replaceAll('-', ''))).toEqual(tables.map(({ day }) => day));
    for (const { options } of tables) expect(options).toContain('fillfactor=50');
  });

  it('carry every promise of the table: its checks and its primary key', async () => {
    await createDays(opened.connections.store);

    const constraintsOf = async (table: string) =>
      opened.database.rows(
        `SELECT contype, pg_get_constraintdef(oid) AS definition FROM pg_constraint
         WHERE conrelid = $1::regclass ORDER BY 1, 2`,
        [table],
      );
    const [last] = (await dayTables()).slice(-1);
    expect(await constraintsOf(`idempotency_record_d${last?.day ?? ''}`)).toEqual(
      await constraintsOf('idempotency_record_undated'),
    );
  });

  it('are each made in a transaction of its own, so that many are made as surely as one, and stay', async () => {
    await opened.database.rows(
      `INSERT INTO idempotency_method (path, retention_ms, max_key_age_ms) VALUES ('/other/Old', 1000, $1)`,
      [200 * DAY_MS],
    );
    const { store } = opened.connections;
    let transactions = 0;
    /** As slow as it takes for a transaction to be over after its fourth statement, and away after a hundred of them. */
    const slow = (most: number) => ({
      $transaction: <R>(work: (tx: SqlClient) => Promise<R>) =>
        store.$transaction((tx) => {
          transactions += 1;
          if (transactions > most) throw new Error('away');
          let statements = 0;
          return work({
            $queryRawUnsafe: (query, ...values) => {
              statements += 1;
              if (statements > 4) throw new Error('the transaction timed out');
              return tx.$queryRawUnsafe(query, ...values);
            },
          });
        }),
    });

    await expect(createDays(slow(100))).rejects.toThrow('away');
    expect(await dayTables()).toHaveLength(100);
    const made = await createDays(slow(Infinity));

    expect(made).toHaveLength(108);
    expect(await dayTables()).toHaveLength(208);
    expect(await createDays(store)).toEqual([]);
  });

  it('are not made twice', async () => {
    await createDays(opened.connections.store);

    expect(await createDays(opened.connections.store)).toEqual([]);
  });

  it('are made once by four processes that start together', async () => {
    const { connectionString } = opened.database;
    const processes = Array.from({ length: 4 }, () => connect({ connectionString }));

    const made = await Promise.all(processes.map(({ store }) => createDays(store)));

    const days = await expectedDays();
    expect(
      made
        .flat()
        .sort()
        .map((day) => day.replaceAll('-', '')),
    ).toEqual(days);
    expect((await dayTables()).map(({ day }) => day)).toEqual(days);
    await Promise.all(processes.map((process) => process.close()));
  });

  it('that were dropped do not come back', async () => {
    await opened.database.rows(
      `UPDATE idempotency_retention SET dropped_through = (now() AT TIME ZONE 'UTC')::date + 2`,
    );

    await createDays(opened.connections.store);

    expect((await dayTables()).map(({ day }) => day)).toEqual((await expectedDays()).slice(-5));
  });

  it('are left to others by a role that may not make them, and that is told; any other failure is thrown', async () => {
    const failing = (code: string) => ({
      $transaction: () =>
        Promise.reject(
          Object.assign(new Error(code), { meta: { driverAdapterError: { cause: { originalCode: code } } } }),
        ),
    });
    const events: RetentionEvent[] = [];
    const onEvent = (event: RetentionEvent): void => void events.push(event);

    await createDaysIfAllowed(failing('42501'), onEvent);
    await expect(createDaysIfAllowed(failing('53100'), onEvent)).rejects.toThrow('53100');

    expect(events).toMatchObject([{ type: 'fault', step: 'create_days', missingRight: true }]);
    await createDaysIfAllowed(opened.connections.maintenance, onEvent);
    expect(events.slice(1).map((event) => 'day' in event && event.day.replaceAll('-', ''))).toEqual(
      await expectedDays(),
    );
  });

  it('neither wait for an open transaction on the records nor make claims wait behind it', async () => {
    const today = claimRequest({ requestId: datedKey(Date.now()) });
    await createDays(opened.connections.store);
    const { bucket } = await claim(opened.store, today);
    await opened.database.rows(`DROP TABLE idempotency_record_d${(await expectedDays()).at(-1)}`);
    const business = await opened.database.pool.connect();
    await business.query('BEGIN');
    await business.query('UPDATE idempotency_record SET instance = instance WHERE bucket = $1', [bucket]);

    try {
      // Its lock_timeout ends it where it has to wait.
      expect(await createDays(opened.connections.store)).toHaveLength(1);
      expect(await opened.store.claim(claimRequest({ requestId: datedKey(Date.now()) }))).toMatchObject({
        kind: 'granted',
      });
    } finally {
      await business.query('ROLLBACK');
      business.release();
    }
  });
});
