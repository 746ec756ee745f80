import { connect } from '../../src/database/connect';
import { type RetentionReport, runRetention, type SqlClient } from '../../src/idempotency/index';
import { RENEW_IF_ELECTED } from '../../src/idempotency/store/sql/retention';
import { policyOf } from '../support/claim-requests';
import { daysAgo, makeDay } from '../support/old-days';
import { openTestStore, type TestStore } from '../support/store';
import { until } from '../support/until';

const DAY_MS = 24 * 3_600_000;

describe('who maintains the records', () => {
  let opened: TestStore;
  let days: readonly string[];

  beforeEach(async () => {
    opened = await openTestStore([policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS, retentionMs: DAY_MS })]);
    days = [await daysAgo(opened.database, 4), await daysAgo(opened.database, 3)];
    for (const day of days) await makeDay(opened.database, day);
  });

  afterEach(() => opened.close());

  const run = (options: Partial<Parameters<typeof runRetention>[0]> = {}): Promise<RetentionReport> =>
    runRetention({ client: opened.connections.maintenance, ...options });

  it('is one process at a time, by a lease that it gives back; the others only look', async () => {
    const elsewhere = connect({ connectionString: opened.database.connectionString });
    const reports: RetentionReport[] = [];

    const report = await run({
      instance: 'first',
      exportDay: async () => {
        reports.push(await runRetention({ client: elsewhere.maintenance }));
      },
    });

    expect(report).toMatchObject({ elected: true, dropped: days });
    expect(reports).toMatchObject([
      { elected: false, created: [], dropped: [], faults: [], observation: { kept: 0 } },
      { elected: false, created: [], dropped: [], faults: [], observation: { kept: 0 } },
    ]);
    expect(await runRetention({ client: elsewhere.maintenance, instance: 'second' })).toMatchObject({ elected: true });
    expect(await opened.database.rows('SELECT instance FROM idempotency_maintenance')).toEqual([
      { instance: 'second' },
    ]);
    await elsewhere.close();
  });

  it('is nobody else until the lease of one that died is over, by the database clock', async () => {
    await opened.database.rows(
      `UPDATE idempotency_maintenance SET owner_token = gen_random_uuid(), held_until = now() + interval '1 minute'`,
    );
    expect(await run()).toMatchObject({ elected: false, dropped: [] });

    await opened.database.rows('UPDATE idempotency_maintenance SET held_until = now()');
    expect(await run()).toMatchObject({ elected: true, dropped: days });
  });

  it('stays the same through an export that takes longer than the lease', async () => {
    const leaseMs = 300;
    const others: RetentionReport[] = [];

    const report = await run({
      leaseMs,
      exportDay: async () => {
        const [before] = await heldUntil();
        await until('the lease is older than it was long', async () => {
          const rows = await opened.database.rows('SELECT 1 WHERE now() > $1::timestamptz', [before?.held_until]);
          return rows.length > 0;
        });
        others.push(await run());
      },
    });

    expect(others).toMatchObject([{ elected: false }, { elected: false }]);
    expect(report).toMatchObject({ elected: true, dropped: days });
  });

  it('stops after the day it is at when somebody else took the lease, and does not give that one back', async () => {
    const { maintenance } = opened.connections;
    let refusedRenewals = 0;
    const watched = {
      $transaction: maintenance.$transaction.bind(maintenance),
      $queryRawUnsafe: async (query: string, ...values: unknown[]) => {
        const rows = await maintenance.$queryRawUnsafe<unknown[]>(query, ...values);
        if (query === RENEW_IF_ELECTED && rows.length === 0) refusedRenewals += 1;
        return rows;
      },
    };

    const report = await run({
      client: watched as unknown as SqlClient & typeof maintenance,
      leaseMs: 60,
      exportDay: async () => {
        await opened.database.rows(
          `UPDATE idempotency_maintenance SET owner_token = gen_random_uuid(), held_until = now() + interval '1 minute'`,
        );
        await until('a renewal was refused', () => Promise.resolve(refusedRenewals > 0));
      },
    });

    expect(report).toMatchObject({ dropped: days.slice(0, 1), faults: [] });
    expect(await run()).toMatchObject({ elected: false });
  });

  it('stops after the day it is at when its process ends', async () => {
    const stopping = new AbortController();
    const exportDay = (): Promise<void> => {
      stopping.abort();
      return Promise.resolve();
    };

    expect(await run({ exportDay, signal: stopping.signal })).toMatchObject({
      dropped: days.slice(0, 1),
      observation: undefined,
    });
    expect(await run()).toMatchObject({ elected: true, dropped: days.slice(1) });
  });

  const heldUntil = () =>
    opened.database.rows<{ held_until: string }>('SELECT held_until::text FROM idempotency_maintenance');
});
