import { runRetention } from '../../src/idempotency/index';
import { observeRecords } from '../../src/idempotency/store/retention-observe';
import { SELECT_DAYS_TO_DROP } from '../../src/idempotency/store/sql/retention';
import { claimRequest, policyOf } from '../support/claim-requests';
import { daysAgo, makeDay, requestOf, stagesOf, tableOf } from '../support/old-days';
import { claim, openTestStore, type TestStore } from '../support/store';

const DAY_MS = 24 * 3_600_000;

describe('a day that is over while an attempt of it still runs (design 4.11)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore([policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS, retentionMs: DAY_MS })]);
  });

  afterAll(() => opened.close());

  it('is not even taken out for a moment, in which the attempt could not complete', async () => {
    const due = await daysAgo(opened.database, 3);
    await makeDay(opened.database, due);
    await claim(opened.store, requestOf(due));
    const exported: string[] = [];

    const report = await runRetention({
      client: opened.connections.maintenance,
      exportDay: async ({ day }) => void exported.push(day),
    });

    expect(report).toMatchObject({ heldBack: [due], dropped: [] });
    expect(exported).toEqual([]);
  });
});

describe('a day that is over', () => {
  let opened: TestStore;

  beforeEach(async () => {
    opened = await openTestStore([policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS, retentionMs: DAY_MS })]);
  });

  afterEach(() => opened.close());

  const run = () => runRetention({ client: opened.connections.maintenance });

  it('goes from where it stands itself, whatever an older one waits for', async () => {
    const [older, younger] = [await daysAgo(opened.database, 5), await daysAgo(opened.database, 4)];
    for (const day of [older, younger]) await makeDay(opened.database, day);
    await claim(opened.store, requestOf(older));
    // As a crash between the two steps of dropping leaves it.
    await opened.database.rows(`ALTER TABLE idempotency_record DETACH PARTITION ${tableOf(younger)}`);

    expect(await run()).toMatchObject({ heldBack: [older], dropped: [younger], faults: [] });
    expect(await stagesOf(opened.database)).not.toHaveProperty(younger);
  });

  it('is a table: a view that somebody left under such a name stays, and keeps no other from going', async () => {
    const [viewed, due] = [await daysAgo(opened.database, 5), await daysAgo(opened.database, 4)];
    await makeDay(opened.database, due);
    await opened.database.rows(`CREATE VIEW ${tableOf(viewed)} AS SELECT 1 AS kept`);

    expect(await run()).toMatchObject({ dropped: [due], faults: [] });
    expect(await opened.database.rows(`SELECT * FROM ${tableOf(viewed)}`)).toEqual([{ kept: 1 }]);
  });

  it('has the name of one: another table that ends in its date says nothing of it', async () => {
    const due = await daysAgo(opened.database, 4);
    const table = `ledger_${due.replaceAll('-', '')}`;
    await opened.database.rows(`CREATE TABLE ${table} (entry text)`);
    await makeDay(opened.database, due);
    await opened.database.rows('UPDATE idempotency_retention SET dropped_through = $1', [due]);

    expect(await opened.database.rows(SELECT_DAYS_TO_DROP, [null])).toEqual([{ day: due, stage: 'attached' }]);
    expect(await run()).toMatchObject({ dropped: [due], faults: [] });
    expect(await opened.database.count(table)).toBe(0);
  });
});

describe('how the records stand', () => {
  it('is counted and not estimated, however much lies in the partitions of other tables', async () => {
    const opened = await openTestStore();
    try {
      await claim(opened.store, claimRequest());
      await opened.database.rows('CREATE TABLE ledger (day date, entry text) PARTITION BY RANGE (day)');
      await opened.database.rows(
        `CREATE TABLE ledger_old PARTITION OF ledger FOR VALUES FROM (MINVALUE) TO (MAXVALUE)`,
      );
      await opened.database.rows(
        `INSERT INTO ledger SELECT current_date, repeat('x', 1000) FROM generate_series(1, 2000)`,
      );

      const observed = await observeRecords(opened.connections.maintenance, 100);

      expect(observed).toMatchObject({ sampled: false, records: { claimed: 1 } });
    } finally {
      await opened.close();
    }
  });
});
