import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { createDays } from '../../src/idempotency/index';
import { registerMethods } from '../../src/idempotency/store/methods';
import { INSERT_METHOD } from '../../src/idempotency/store/sql/methods';
import { CREATE_DAY_LOCK } from '../../src/idempotency/store/sql/days';
import { PURGE_UNDATED } from '../../src/idempotency/store/sql/retention';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { statementsWaiting } from '../support/record-hold';
import * as statements from '../support/scheduler-statements';
import { answerOf, claim, complete, idOf, openTestStore, type TestStore } from '../support/store';

const MINUTE_MS = 60_000;

/** The two ways in which claims are inserted. */
const INSERTS: readonly (readonly [string, (request: ClaimRequest, token: string) => statements.Statement])[] = [
  ['alone', statements.insertClaim],
  ['in a batch', (request, token) => statements.insertClaims([[request, token]])],
];

describe('the insert of a claim (design 4.6)', () => {
  let opened: TestStore;
  let other: PoolClient;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
    other = await opened.database.pool.connect();
  });

  afterEach(() => other.query('ROLLBACK'));

  afterAll(async () => {
    other.release();
    await opened.close();
  });

  const run = async ({ text, values }: statements.Statement): Promise<number> =>
    (await opened.database.pool.query(text, [...values])).rowCount ?? 0;

  describe.each(INSERTS)('%s', (_, insert) => {
    const dated = (offsetMs: number): ClaimRequest =>
      claimRequest({
        requestId: datedKey(Date.now() + offsetMs),
        policy: policyOf('CreatePayment', { maxKeyAgeMs: 60 * MINUTE_MS }),
      });

    it('takes a key once, undated or dated, and each record is for itself', async () => {
      for (const request of [
        claimRequest(),
        claimRequest(),
        dated(0),
        dated(0),
        dated(-59 * MINUTE_MS),
        dated(4 * MINUTE_MS),
      ]) {
        expect(await run(insert(request, randomUUID()))).toBe(1);
        expect(await run(insert(request, randomUUID()))).toBe(0);
      }
    });

    it.each([
      ['is too old', -61 * MINUTE_MS],
      ['is from the future', 6 * MINUTE_MS],
    ])('takes no key that %s', async (_name, offsetMs) => {
      expect(await run(insert(dated(offsetMs), randomUUID()))).toBe(0);
    });

    it('takes no key whose day was dropped', async () => {
      const request = dated(0);
      await opened.database.rows('UPDATE idempotency_retention SET dropped_through = $1', [request.key.bucket]);
      try {
        expect(await run(insert(request, randomUUID()))).toBe(0);
      } finally {
        await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = '1970-01-01'`);
      }
    });

    it('does not wait for a record that is being completed', async () => {
      const request = claimRequest();
      const { ownerToken } = await claim(opened.store, request);
      const { text, values } = statements.complete(request, ownerToken);
      await other.query('BEGIN');
      await other.query(text, [...values]);

      // Where it waits, its patience ends it with an error.
      expect(await run(insert(request, randomUUID()))).toBe(0);
    });

    it('waits for a claim that is being made, and gives nothing when that commits', async () => {
      const request = claimRequest();
      const { text, values } = insert(request, randomUUID());
      await other.query('BEGIN');
      await other.query(text, [...values]);

      const second = run(insert(request, randomUUID()));
      await statementsWaiting(opened.database, 1);
      await other.query('COMMIT');

      expect(await second).toBe(0);
    });
  });

  it('of many takes them in the order of the primary key, so that no two can wait for each other', async () => {
    const [small, big] = [claimRequest(), claimRequest()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1)) as [
      ClaimRequest,
      ClaimRequest,
    ];
    await other.query('BEGIN');
    const first = statements.insertClaim(small, randomUUID());
    await other.query(first.text, [...first.values]);

    const batch = run(
      statements.insertClaims([
        [big, randomUUID()],
        [small, randomUUID()],
      ]),
    );
    await statementsWaiting(opened.database, 1);
    const second = statements.insertClaim(big, randomUUID());
    expect((await other.query(second.text, [...second.values])).rowCount).toBe(1);
    await other.query('COMMIT');

    expect(await batch).toBe(0);
  });
});

describe('the settings that a statement on the records makes for itself', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
    await opened.database.rows(`
      CREATE TABLE observed (durable text, patience text, idle text);
      CREATE FUNCTION observe() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO observed VALUES (current_setting('synchronous_commit'), current_setting('lock_timeout'),
          current_setting('idle_in_transaction_session_timeout'));
        RETURN NULL;
      END $$;
      CREATE TRIGGER observe AFTER INSERT OR UPDATE OR DELETE ON idempotency_record_undated
        FOR EACH ROW EXECUTE FUNCTION observe()`);
  });

  afterAll(() => opened.close());

  type Made = (request: ClaimRequest, token: string) => statements.Statement;
  const takeAway: Made = (request, token) => statements.takeTokenAway(request, token, randomUUID());
  const alone: Made = () => statements.insertClaim(claimRequest(), randomUUID());
  const another: Made = () => statements.insertClaims([[claimRequest(), randomUUID()]]);
  const takeOver: Made = (request, token) => statements.takeOver(request, token, randomUUID());
  const purge: Made = () => ({ text: PURGE_UNDATED, values: [1, '-infinity', 10] });

  it.each<[string, Made, 'claimed' | 'completed', Partial<Record<'durable' | 'patience', string>>]>([
    ['a claim', alone, 'claimed', { durable: 'off', patience: '2s' }],
    ['claims in a batch', another, 'claimed', { durable: 'off', patience: '2s' }],
    ['a takeover', takeOver, 'claimed', { durable: 'off', patience: '2s' }],
    ['a renewal', statements.renew, 'claimed', { durable: 'off' }],
    ['a publication', statements.publish, 'claimed', { durable: 'off', patience: '2s' }],
    ['a release', statements.release, 'claimed', { durable: 'on', patience: '2s' }],
    ['the record of a step', statements.recordStep, 'claimed', { durable: 'on', patience: '2s' }],
    ['the parking of a request', statements.park, 'claimed', { patience: '2s' }],
    ['taking the own token away', takeAway, 'claimed', { durable: 'on', patience: '1s' }],
    ['a purge', purge, 'completed', { durable: 'off' }],
  ])('%s', async (_, make, state, expected) => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    if (state === 'completed') await complete(opened.store, claimed, answerOf('done'));
    await opened.database.rows(
      `UPDATE idempotency_record SET lease_until = now(), created_at = created_at - interval '100 days',
         recovery_point = $2
       WHERE id = $1`,
      [idOf(request), make === statements.park ? 'draft' : null],
    );
    await opened.database.rows('TRUNCATE observed');

    const { text, values } = make(request, claimed.ownerToken);
    await opened.database.rows(text, values);

    const [observed] = await opened.database.rows('SELECT * FROM observed');
    expect(observed).toMatchObject(expected);
  });

  it.each<[string, Made, 'claimed' | 'completed']>([
    ['a completion', statements.complete, 'claimed'],
    ['the confirmation of a completion', statements.confirm, 'completed'],
    ['the record of a step', statements.recordStep, 'claimed'],
    ['the record of a step in a transaction', statements.recordStepInTransaction, 'claimed'],
  ])('%s reaches the disk where sessions do not wait for it by default', async (_, make, state) => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    if (state === 'completed') await complete(opened.store, claimed, answerOf('done'));
    await opened.database.rows('TRUNCATE observed');
    const client = await opened.database.pool.connect();
    try {
      await client.query('SET synchronous_commit = off');
      const { text, values } = make(request, claimed.ownerToken);
      await client.query(text, [...values]);
    } finally {
      await client.query('RESET synchronous_commit');
      client.release();
    }
    const [observed] = await opened.database.rows<{ durable: string; idle: string }>('SELECT * FROM observed');
    expect(observed?.durable).toBe('on');
    const inTransaction = make === statements.recordStepInTransaction || make === statements.complete;
    expect(observed?.idle).toBe(inTransaction ? '15s' : '0');
  });

  it('who makes days waits four seconds for the others', async () => {
    const client = await opened.database.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query(CREATE_DAY_LOCK);
      expect((await client.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '4s' }]);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
});

describe('the registration of a method', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  it('writes nothing and uses up no id where the method is known: ids are small, starts are many', async () => {
    const state = () =>
      opened.database.rows(
        `SELECT ctid, id, (SELECT last_value FROM idempotency_method_id_seq) AS last FROM idempotency_method ORDER BY id`,
      );
    const before = await state();
    await registerMethods(opened.connections.store, [policyOf('CreatePayment'), policyOf('RefundPayment')]);
    expect(await state()).toEqual(before);
  });

  it('waits for another process that registers the same, and takes its id', async () => {
    const other = await opened.database.pool.connect();
    const values = ['/other.v1.Service/Method', 1, 1];
    await other.query('BEGIN');
    await other.query(INSERT_METHOD, values);
    const second = opened.database.rows(INSERT_METHOD, values);
    await statementsWaiting(opened.database, 1);
    await other.query('COMMIT');
    other.release();

    await expect(second).resolves.toEqual([]);
    expect(await opened.database.rows(`SELECT 1 FROM idempotency_method WHERE path = $1`, [values[0]])).toHaveLength(1);
  });
});
