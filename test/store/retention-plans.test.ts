import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { createDays } from '../../src/idempotency/index';
import { INSERT_CLAIM, INSERT_CLAIMS } from '../../src/idempotency/store/sql/claim';
import { LOOK_UP } from '../../src/idempotency/store/sql/look-up';
import { PURGE_UNDATED } from '../../src/idempotency/store/sql/retention';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey } from '../support/claim-requests';
import { daysAgo, tableOf } from '../support/old-days';
import { idOf, openTestStore, type TestStore } from '../support/store';

/** A node of `EXPLAIN (FORMAT JSON)`, as far as these tests look. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

type Parameter = string | number | Buffer | null;

const RECORDS = 5_000;
const UNDATED = 'idempotency_record_undated';

describe.each(['force_custom_plan', 'force_generic_plan'])('with 5,000 records a partition and %s', (planCacheMode) => {
  let opened: TestStore;
  let client: PoolClient;
  let today: string;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
    today = await daysAgo(opened.database, 0);
    for (const day of ['1970-01-01', today, await daysAgo(opened.database, 1)]) {
      await opened.database.rows(
        `INSERT INTO idempotency_record
           (created_at, lease_until, completed_at, bucket, attempt, method, status_code, id, owner_token, state,
            fingerprint, scope, request_id, instance)
         SELECT now() - interval '400 days', now() - interval '400 days', now(), $1, 1, 1, 0, gen_random_uuid(),
           gen_random_uuid(), 'completed', '\\x0101', 'account-1', gen_random_uuid()::text, 'somewhere'
         FROM generate_series(1, ${RECORDS})`,
        [day],
      );
    }
    await opened.database.rows('ANALYZE idempotency_record');
    client = await opened.database.pool.connect();
    await client.query(`SET plan_cache_mode = ${planCacheMode}`);
  });

  beforeEach(() => client.query('BEGIN'));
  afterEach(() => client.query('ROLLBACK'));

  afterAll(async () => {
    client.release();
    await opened.close();
  });

  /** Runs a statement as a prepared one; the plan says what was really done. */
  const explain = async (statement: string, values: readonly Parameter[]): Promise<PlanNode> => {
    const name = `s${randomUUID().replaceAll('-', '')}`;
    await client.query(`PREPARE ${name} AS ${statement}`);
    const execute = `EXECUTE ${name}(${values.map(literal).join(', ')})`;
    const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`,
    );
    const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
    if (plan === undefined) throw new Error('no plan');
    return plan;
  };

  const place = (request: ClaimRequest): readonly Parameter[] => [request.key.bucket, idOf(request)];
  const age = (request: ClaimRequest): readonly Parameter[] => [request.key.dated?.atMs ?? null, 86_400_000];
  const claimOf = (request: ClaimRequest): readonly Parameter[] => [
    ...[...place(request), ...age(request), 30_000, 1, randomUUID(), request.fingerprint],
    ...[request.scope, request.key.text, 'here', null],
  ];
  const batchOf = (requests: readonly ClaimRequest[]): string =>
    JSON.stringify(
      requests.map((request) => ({
        ...{ bucket: request.key.bucket, id: idOf(request), datedAtMs: request.key.dated?.atMs ?? null },
        ...{ maxKeyAgeMs: 86_400_000, leaseMs: 30_000, method: 1, token: randomUUID(), scope: request.scope },
        ...{ fingerprint: request.fingerprint.toString('hex'), requestId: request.key.text, instance: 'here' },
      })),
    );

  const cases = (): readonly (readonly [string, ClaimRequest])[] => [
    [tableOf(today), claimRequest({ requestId: datedKey(Date.parse(today) + 1) })],
    [UNDATED, claimRequest()],
  ];

  it('a claim reads one partition, by its index', async () => {
    for (const [table, request] of cases()) {
      const plan = await explain(INSERT_CLAIM, claimOf(request));
      expect(reads(plan)).toEqual([{ table, index: `${table}_pkey` }]);
      expect(buffersOf(plan)).toBeLessThan(60);
    }
  });

  it('claims that go together read the partitions of their keys, by their indexes', async () => {
    const [dated, undated] = cases();
    const requests = [dated, undated].flatMap((entry) => (entry === undefined ? [] : [entry[1]]));

    const plan = await explain(INSERT_CLAIMS, [batchOf(requests)]);

    expect(reads(plan)).toEqual(
      [tableOf(today), UNDATED].map((table) => ({ table, index: `${table}_pkey` })).sort(byTable),
    );
    expect(buffersOf(plan)).toBeLessThan(120);
  });

  it('a replay reads one partition, by its index', async () => {
    for (const [table, request] of cases()) {
      await client.query(INSERT_CLAIM, [...claimOf(request)]);
      const plan = await explain(LOOK_UP, [...place(request), ...age(request)]);
      expect(reads(plan)).toEqual([{ table, index: `${table}_pkey` }]);
      expect(buffersOf(plan)).toBeLessThan(20);
    }
  });

  it('a batch of a purge reads one partition, by its indexes, and no more of it than it deletes', async () => {
    const plan = await explain(PURGE_UNDATED, [1, '-infinity', 10]);

    expect(reads(plan)).toEqual([
      { table: UNDATED, index: `${UNDATED}_method_created` },
      { table: UNDATED, index: `${UNDATED}_pkey` },
    ]);
    expect(await client.query(`SELECT FROM ${UNDATED}`)).toHaveProperty('rowCount', RECORDS - 10);
    expect(buffersOf(plan)).toBeLessThan(150);
  });
});

/** What was read of the records, each once; an insert itself reads nothing. */
function reads(plan: PlanNode): readonly { readonly table: string; readonly index: string | undefined }[] {
  const found = new Map<string, { table: string; index: string | undefined }>();
  const visit = (node: PlanNode): void => {
    const table = node['Relation Name'];
    const isRead = node['Node Type'] !== 'ModifyTable' && node['Actual Loops'] > 0;
    if (isRead && table?.startsWith('idempotency_record') === true) {
      found.set(`${table} ${node['Index Name'] ?? ''}`, { table, index: node['Index Name'] });
    }
    node.Plans?.forEach(visit);
  };
  visit(plan);
  return [...found.values()].sort(byTable);
}

function byTable(one: { table: string; index: string | undefined }, other: typeof one): number {
  return `${one.table} ${one.index ?? ''}`.localeCompare(`${other.table} ${other.index ?? ''}`);
}

function buffersOf(plan: PlanNode): number {
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

function literal(value: Parameter): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'`;
  return `'${value.replaceAll("'", "''")}'`;
}
