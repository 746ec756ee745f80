import { createDays, observeRetention, type RetentionEvent, runRetention } from '../../src/idempotency/index';
import { observeRecords } from '../../src/idempotency/store/retention-observe';
import { claimRequest, datedKey } from '../support/claim-requests';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

describe('how the records stand', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  it('is nothing at first', async () => {
    expect(await observeRecords(opened.connections.maintenance)).toEqual({
      ...{ partitions: 1, records: {}, oldestClaimAgeMs: 0, kept: 0, sampled: false },
    });
  });

  it('is counted over all partitions, with the age of the oldest open claim', async () => {
    const days = await createDays(opened.connections.maintenance);
    const old = claimRequest({ requestId: datedKey(Date.now()) });
    await claim(opened.store, old);
    await opened.database.rows(`UPDATE idempotency_record SET created_at = now() - interval '1 hour'`);
    await claim(opened.store, claimRequest());
    const done = claimRequest();
    await complete(opened.store, await claim(opened.store, done), answerOf('paid'));
    await opened.database.rows(
      `UPDATE idempotency_record SET created_at = now() - interval '2 hours' WHERE request_id = $1`,
      [done.key.text],
    );

    const observed = await observeRecords(opened.connections.maintenance);

    expect(observed).toMatchObject({
      ...{ partitions: days.length + 1, records: { claimed: 2, completed: 1 }, kept: 0, sampled: false },
    });
    expect(observed.oldestClaimAgeMs).toBeGreaterThanOrEqual(3_600_000);
    expect(observed.oldestClaimAgeMs).toBeLessThan(3_660_000);
  });

  it('is told by a look of its own, and what a look can not see is an error and no fault of retention', async () => {
    const told: RetentionEvent[] = [];
    await observeRetention(opened.connections.maintenance, (event) => told.push(event));
    expect(told).toMatchObject([{ type: 'observed', observation: { records: { claimed: 2, completed: 1 } } }]);

    await opened.database.rows('ALTER TABLE idempotency_record_kept RENAME TO elsewhere');
    const look = observeRetention(opened.connections.maintenance, (event) => told.push(event));
    await expect(look).rejects.toThrow('idempotency_record_kept');
    expect(told).toHaveLength(1);
    const { faults } = await runRetention({ client: opened.connections.maintenance });
    expect(faults.map(({ step }) => step)).toContain('observe');
    await opened.database.rows('ALTER TABLE elsewhere RENAME TO idempotency_record_kept');
  });

  it('is estimated from so many pages where there are more', async () => {
    await opened.database.rows(
      `INSERT INTO idempotency_record
         (created_at, lease_until, completed_at, bucket, attempt, method, status_code, id, owner_token, state,
          fingerprint, scope, request_id, instance)
       SELECT now(), now(), now(), '1970-01-01', 1, 1, 0, gen_random_uuid(), gen_random_uuid(), 'completed', '\\x0101',
         'account-1', gen_random_uuid()::text, 'somewhere'
       FROM generate_series(1, 20000)`,
    );

    const observed = await observeRecords(opened.connections.maintenance, 200);

    expect(observed.sampled).toBe(true);
    expect(observed.records['completed']).toBeGreaterThan(12_000);
    expect(observed.records['completed']).toBeLessThan(30_000);
  });
});
