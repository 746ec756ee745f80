import { runRetention } from '../../src/idempotency/index';
import { policyOf } from '../support/claim-requests';
import { daysAgo, makeDay, requestOf } from '../support/old-days';
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
