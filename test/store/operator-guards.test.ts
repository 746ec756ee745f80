import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { createDays } from '../../src/idempotency/index';
import { FIND_BY_KEY } from '../../src/idempotency/store/sql/operator';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey } from '../support/claim-requests';
import * as operator from '../support/operator-statements';
import type { Statement } from '../support/scheduler-statements';
import { idOf, claim, openTestStore, type TestStore } from '../support/store';

const STATES = ['claimed', 'running', 'parked', 'completed', 'expired'] as const;
type State = (typeof STATES)[number];

/** How a record gets into a state; one that is merely claimed has no lease any more. */
const SET: Readonly<Record<State, string>> = {
  claimed: `lease_until = now() - interval '1 second'`,
  running: `lease_until = now() + interval '1 minute'`,
  parked: `state = 'parked', lease_until = now() - interval '1 second', recovery_point = 'draft', attempt = 10`,
  completed: `state = 'completed', lease_until = now() - interval '1 second', completed_at = now(), status_code = 0`,
  expired: `state = 'expired', lease_until = now() - interval '1 second', completed_at = now(), status_code = 0`,
};

/** A change that somebody makes who looks after the service, and the states in which it is made. */
interface Change {
  readonly make: (request: ClaimRequest, token: string) => Statement;
  readonly works: readonly State[];
}

const CHANGES: readonly (readonly [string, Change])[] = [
  ['freeing a parked request', { make: operator.freeParked, works: ['parked'] }],
  ['taking a claim away', { make: operator.takeClaimAway, works: ['claimed'] }],
  ['ending a running lease', { make: operator.endRunningLease, works: ['claimed', 'running'] }],
  ['making a tombstone', { make: operator.expire, works: ['completed'] }],
  ['refusing what nobody runs', { make: operator.refuse, works: ['claimed', 'parked'] }],
];

describe('a change of an operator (design 4.5, 4.7)', () => {
  let opened: TestStore;
  let client: PoolClient;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
    client = await opened.database.pool.connect();
  });

  afterAll(async () => {
    client.release();
    await opened.close();
  });

  const run = async ({ text, values }: Statement): Promise<number> =>
    (await opened.database.pool.query(text, [...values])).rowCount ?? 0;

  const rowOf = async (request: ClaimRequest): Promise<Readonly<Record<string, unknown>> | undefined> =>
    (await opened.database.rows('SELECT * FROM idempotency_record WHERE id = $1', [idOf(request)]))[0];

  const recordIn = async (state: State): Promise<[ClaimRequest, string]> => {
    const request = claimRequest({ requestId: datedKey(Date.now()) });
    const { ownerToken } = await claim(opened.store, request);
    await opened.database.rows(`UPDATE idempotency_record SET ${SET[state]} WHERE id = $1`, [idOf(request)]);
    return [request, ownerToken];
  };

  describe.each(CHANGES)('%s', (_, { make, works }) => {
    it.each(works)('is made once where it is %s, under a token that no attempt has', async (state) => {
      const [request, token] = await recordIn(state);
      expect(await run(make(request, token))).toBe(1);
      const row = await rowOf(request);
      expect(row?.['instance']).toBe('operator ada');
      if (make === operator.expire) return;
      expect(row?.['owner_token']).not.toBe(token);
      expect(await run(make(request, token))).toBe(0);
    });

    it.each(STATES.filter((state) => !works.includes(state)))('changes nothing where it is %s', async (state) => {
      const [request, token] = await recordIn(state);
      const before = await rowOf(request);
      expect(await run(make(request, token))).toBe(0);
      expect(await rowOf(request)).toEqual(before);
    });

    it.each(works)('changes nothing where it is %s, by a token that is another by now', async (state) => {
      const [request] = await recordIn(state);
      const before = await rowOf(request);
      expect(await run(make(request, randomUUID()))).toBe(0);
      expect(await rowOf(request)).toEqual(before);
    });

    it('touches no other record, though token and state fit', async () => {
      const [state = 'claimed'] = works;
      const [request, token] = await recordIn(state);
      const [neighbour] = await recordIn(state);
      await opened.database.rows('UPDATE idempotency_record SET owner_token = $2 WHERE id = $1', [
        ...[idOf(neighbour), token],
      ]);
      const before = await rowOf(neighbour);
      expect(await run(make(request, token))).toBe(1);
      expect(await rowOf(neighbour)).toEqual(before);
    });

    it('is durable whatever the session says, waits for nobody for long, and reads one day by its key', async () => {
      const [request, token] = await recordIn(works[0] ?? 'claimed');
      const { text, values } = make(request, token);
      await client.query('BEGIN');
      try {
        await client.query('SET LOCAL synchronous_commit = off');
        const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
          `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
          [...values],
        );
        const settings = await client.query(
          `SELECT current_setting('synchronous_commit') AS durable, current_setting('lock_timeout') AS patience`,
        );
        expect(settings.rows).toEqual([{ durable: 'on', patience: '2s' }]);
        expectIndexed(scansOf(rows[0]?.['QUERY PLAN'][0]?.Plan), /bucket = .*id = /, [dayOf(request)]);
      } finally {
        await client.query('ROLLBACK');
      }
    });
  });

  it('finding a key reads its day and what was kept, by their keys and no further than the part that is of the key', async () => {
    const [request] = await recordIn('claimed');
    await opened.database.rows(
      `INSERT INTO idempotency_record_kept SELECT now(), record.* FROM idempotency_record AS record WHERE id = $1`,
      [idOf(request)],
    );
    const start = idOf(request).slice(0, 13);
    const range = [`${start}-0000-0000-000000000000`, `${start}-ffff-ffff-ffffffffffff`];
    await client.query('BEGIN');
    try {
      await client.query('SET LOCAL enable_seqscan = off');
      const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${FIND_BY_KEY}`,
        [request.key.bucket, ...range, request.key.text],
      );
      const scans = scansOf(rows[0]?.['QUERY PLAN'][0]?.Plan);
      expectIndexed(scans, /bucket = .*id >= .*id <= /, [dayOf(request), 'idempotency_record_kept']);
    } finally {
      await client.query('ROLLBACK');
    }
  });
});

/** A node of `EXPLAIN (ANALYZE, FORMAT JSON)`. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Actual Loops': number;
  readonly Plans?: readonly PlanNode[];
}

const dayOf = ({ key }: ClaimRequest): string => `idempotency_record_d${key.bucket.replaceAll('-', '')}`;

/** Those that read a table of records. */
function scansOf(node: PlanNode | undefined): readonly PlanNode[] {
  if (node === undefined) return [];
  const isScan = node['Node Type'].includes('Scan') && node['Actual Loops'] > 0;
  const isOfRecords = /_record_/.test(`${node['Relation Name'] ?? ''}${node['Index Name'] ?? ''}`);
  return [...(isScan && isOfRecords ? [node] : []), ...(node.Plans ?? []).flatMap(scansOf)];
}

function expectIndexed(scans: readonly PlanNode[], condition: RegExp, tables: readonly string[]): void {
  expect(scans.map((scan) => scan['Index Name'])).toEqual(tables.map((table) => `${table}_pkey`));
  for (const scan of scans) expect(scan['Index Cond']).toMatch(condition);
}
