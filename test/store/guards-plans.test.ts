import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { createDays } from '../../src/idempotency/index';
import { PURGE_UNDATED } from '../../src/idempotency/store/sql/retention';
import { LOOK_UP_STATUS } from '../../src/idempotency/store/sql/look-up';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey } from '../support/claim-requests';
import * as statements from '../support/scheduler-statements';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

/** A node of `EXPLAIN (ANALYZE, FORMAT JSON)`. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Conflict Arbiter Indexes'?: readonly string[];
  readonly 'Actual Loops': number;
  readonly Plans?: readonly PlanNode[];
}

type Made = (request: ClaimRequest, token: string) => statements.Statement;

const STATEMENTS: readonly (readonly [string, Made])[] = [
  ['a claim', () => statements.insertClaim(keyOfToday(), randomUUID())],
  ['claims in a batch', () => statements.insertClaims([keyOfToday(), keyOfToday()].map((one) => [one, randomUUID()]))],
  ['a takeover', (request, token) => statements.takeOver(request, token, randomUUID())],
  ['a renewal', statements.renew],
  ['the look whether a claim is still held', statements.stillHeld],
  ['the look whether an attempt still runs', statements.stillRunning],
  ['the end of a lease', statements.endLease],
  ['a release', statements.release],
  ['a publication', statements.publish],
  ['taking the own token away', (request, token) => statements.takeTokenAway(request, token, randomUUID())],
  ['the record of a step', statements.recordStep],
  ['the parking of a request', statements.park],
  ['the confirmation of a completion', statements.confirm],
  ['a look-up', statements.lookUp],
  ['a look-up of the status', (request) => ({ ...statements.lookUp(request), text: LOOK_UP_STATUS })],
];

/** They insert or, by the primary key, change; the day is found when they run. */
const FENCES: readonly (readonly [string, Made])[] = [
  ['a completion', statements.complete],
  ['the record of a step in a transaction', statements.recordStepInTransaction],
];

function keyOfToday(): ClaimRequest {
  return claimRequest({ requestId: datedKey(Date.now()) });
}

describe('the plan of a statement on the records (design 4.5, 4.11)', () => {
  let opened: TestStore;
  let client: PoolClient;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
    await claim(opened.store, claimRequest());
    // As many records in three of the tables as make an index worth its while.
    await opened.database.rows(`
      INSERT INTO idempotency_record (created_at, lease_until, bucket, attempt, method, id, owner_token, state,
        fingerprint, scope, request_id, instance)
      SELECT now(), now(), bucket, 1, 1, gen_random_uuid(), gen_random_uuid(), 'claimed', '\\x0102', 'account-1',
        gen_random_uuid()::text, 'process-1'
      FROM generate_series(1, 1500), (
        VALUES ('1970-01-01'::date), ((now() AT TIME ZONE 'UTC')::date), ((now() AT TIME ZONE 'UTC')::date + 1)
      ) AS day(bucket)`);
    await opened.database.rows('ANALYZE idempotency_record');
    client = await opened.database.pool.connect();
  });

  afterAll(async () => {
    client.release();
    await opened.close();
  });

  const planOf = async ({ text, values }: statements.Statement): Promise<readonly PlanNode[]> => {
    await client.query('BEGIN');
    try {
      const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
        [...values],
      );
      return nodesOf(rows[0]?.['QUERY PLAN'][0]?.Plan);
    } finally {
      await client.query('ROLLBACK');
    }
  };

  /** The nodes that read a table of records, and were run. */
  const readsOf = async (statement: statements.Statement): Promise<readonly PlanNode[]> =>
    (await planOf(statement)).filter(
      (node) =>
        node['Node Type'].includes('Scan') &&
        node['Actual Loops'] > 0 &&
        /_record_/.test(`${node['Relation Name'] ?? ''}${node['Index Name'] ?? ''}`),
    );

  it.each(STATEMENTS)('%s reads one table, by its primary key', async (_, make) => {
    const request = keyOfToday();
    const claimed = await claim(opened.store, request);
    // Half done and without a lease, so that every part of a statement is run.
    await opened.database.rows(
      `UPDATE idempotency_record SET lease_until = now(), recovery_point = 'draft' WHERE id = $1`,
      [claimed.id],
    );
    if (make === statements.confirm) await complete(opened.store, claimed, answerOf('done'));

    const reads = await readsOf(make(request, claimed.ownerToken));

    expect(reads.length).toBeGreaterThan(0);
    const table = `idempotency_record_d${request.key.bucket.replaceAll('-', '')}`;
    for (const read of reads) {
      expect(read).toMatchObject({ 'Node Type': expect.stringMatching(/^Index/) as string });
      expect(read['Index Name']).toBe(`${table}_pkey`);
      expect(read['Index Cond']).toMatch(/bucket = .*id = /);
    }
  });

  it.each(FENCES)('%s finds its record by the primary key alone, and no table is planned for', async (_, make) => {
    const request = keyOfToday();
    const claimed = await claim(opened.store, request);
    const fence = make(request, claimed.ownerToken);

    const nodes = await planOf(fence);

    expect(nodes.filter((node) => node['Conflict Arbiter Indexes'] !== undefined)).toMatchObject([
      { 'Relation Name': 'idempotency_record', 'Conflict Arbiter Indexes': ['idempotency_record_pkey'] },
    ]);
    expect(nodes.filter((node) => node['Node Type'].includes('Scan') && node['Relation Name'] !== undefined)).toEqual(
      [],
    );
  });

  it('a purge finds its records by the index of their claims, and deletes them by the primary key', async () => {
    await opened.database.rows(
      `UPDATE idempotency_record_undated SET created_at = created_at - interval '100 days'
       WHERE id IN (SELECT id FROM idempotency_record_undated ORDER BY id LIMIT 20)`,
    );
    await opened.database.rows('VACUUM ANALYZE idempotency_record_undated');

    const reads = await readsOf({ text: PURGE_UNDATED, values: [1, '-infinity', 10] });

    expect(reads.map((read) => [read['Index Name'], read['Index Cond']])).toEqual(
      expect.arrayContaining([
        [
          'idempotency_record_undated_method_created',
          expect.stringMatching(/method = .*created_at >= .*created_at <= /) as string,
        ],
        ['idempotency_record_undated_pkey', expect.stringMatching(/bucket = .*id = ANY/) as string],
      ]),
    );
  });
});

function nodesOf(node: PlanNode | undefined): readonly PlanNode[] {
  return node === undefined ? [] : [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}
