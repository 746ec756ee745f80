import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { REFUSAL } from '../../src/idempotency/store/sql/fence';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest } from '../support/claim-requests';
import * as statements from '../support/scheduler-statements';
import { answerOf, claim, complete, idOf, openTestStore, type TestStore } from '../support/store';

/** A statement that only the owner of a record in one state may carry out. */
interface OwnersStatement {
  readonly make: (request: ClaimRequest, token: string) => statements.Statement;
  /** In which it works; the other is `claimed` or `completed`. */
  readonly state: 'claimed' | 'completed';
  /** Whether a row in somebody else's hand is left alone at once. */
  readonly waitsForNobody?: true;
  /** Whether only a half-finished request is meant. */
  readonly halfDone?: true;
}

const TAKE_OVER: OwnersStatement = {
  make: (request, token) => statements.takeOver(request, token, randomUUID()),
  state: 'claimed',
  waitsForNobody: true,
};

const OWNERS: readonly (readonly [string, OwnersStatement])[] = [
  ['a takeover, by the token seen', TAKE_OVER],
  ['a completion', { make: statements.complete, state: 'claimed' }],
  ['a renewal', { make: statements.renew, state: 'claimed', waitsForNobody: true }],
  ['the look whether a claim is still held', { make: statements.stillHeld, state: 'claimed', waitsForNobody: true }],
  ['the end of a lease', { make: statements.endLease, state: 'claimed', waitsForNobody: true }],
  ['a release', { make: statements.release, state: 'claimed' }],
  ['a publication', { make: statements.publish, state: 'claimed' }],
  [
    'taking the own token away',
    { make: (request, token) => statements.takeTokenAway(request, token, randomUUID()), state: 'claimed' },
  ],
  ['the record of a step', { make: statements.recordStep, state: 'claimed' }],
  ['the record of a step in a transaction', { make: statements.recordStepInTransaction, state: 'claimed' }],
  ['the parking of a request', { make: statements.park, state: 'claimed', waitsForNobody: true, halfDone: true }],
  ['the confirmation of a completion', { make: statements.confirm, state: 'completed' }],
];

describe('a statement of the owner of a claim (design 4.5–4.8)', () => {
  let opened: TestStore;
  let other: PoolClient;

  beforeAll(async () => {
    opened = await openTestStore();
    other = await opened.database.pool.connect();
  });

  afterAll(async () => {
    other.release();
    await opened.close();
  });

  /** Runs a statement that must not wait for long; the rows that it told. */
  const run = async ({ text, values }: statements.Statement): Promise<number> => {
    const client = await opened.database.pool.connect();
    try {
      await client.query("SET statement_timeout = '700ms'");
      return (await client.query(text, [...values])).rowCount ?? 0;
    } catch (error) {
      // A fence has no other way to say so that its transaction can't overlook.
      if (error instanceof Error && error.message.includes(REFUSAL)) return 0;
      throw error;
    } finally {
      await client.query('RESET statement_timeout');
      client.release();
    }
  };

  const rowOf = async (request: ClaimRequest): Promise<unknown> =>
    (await opened.database.rows('SELECT * FROM idempotency_record WHERE id = $1', [idOf(request)]))[0];

  const setRecoveryPoint = (request: ClaimRequest): Promise<unknown> =>
    opened.database.rows(`UPDATE idempotency_record SET recovery_point = 'draft' WHERE id = $1`, [idOf(request)]);

  /** A record in a state, whose lease is over so that only state and token protect it. */
  const recordIn = async (state: 'claimed' | 'completed', halfDone = false): Promise<[ClaimRequest, string]> => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    if (halfDone) await setRecoveryPoint(request);
    if (state === 'completed') await complete(opened.store, claimed, answerOf('done'));
    await opened.endLease(request);
    return [request, claimed.ownerToken];
  };

  describe.each(OWNERS)('%s', (_, { make, state, waitsForNobody, halfDone }) => {
    it('works once for the owner, in its state', async () => {
      const [request, token] = await recordIn(state, halfDone);
      expect(await run(make(request, token))).toBe(1);
    });

    it('changes nothing with a token that is another by now', async () => {
      const [request] = await recordIn(state, halfDone);
      const before = await rowOf(request);
      expect(await run(make(request, randomUUID()))).toBe(0);
      expect(await rowOf(request)).toEqual(before);
    });

    it('changes nothing in another state', async () => {
      const [request, token] = await recordIn(state === 'claimed' ? 'completed' : 'claimed', halfDone);
      const before = await rowOf(request);
      expect(await run(make(request, token))).toBe(0);
      expect(await rowOf(request)).toEqual(before);
    });

    it('touches no other record, though token and state fit', async () => {
      const [request, token] = await recordIn(state, halfDone);
      const [neighbour] = await recordIn(state, halfDone);
      await opened.database.rows('UPDATE idempotency_record SET owner_token = $2 WHERE id = $1', [
        ...[idOf(neighbour), token],
      ]);
      const before = await rowOf(neighbour);
      expect(await run(make(request, token))).toBe(1);
      expect(await rowOf(neighbour)).toEqual(before);
    });

    if (waitsForNobody !== true) return;

    it('waits for nobody who has the row in hand, whatever other rows would do', async () => {
      const [request, token] = await recordIn(state, halfDone);
      const [neighbour] = await recordIn(state, halfDone);
      await opened.database.rows('UPDATE idempotency_record SET owner_token = $2 WHERE id = $1', [
        ...[idOf(neighbour), token],
      ]);
      await other.query('BEGIN');
      try {
        await other.query('UPDATE idempotency_record SET instance = instance WHERE id = $1', [idOf(request)]);
        const seen = await run(make(request, token));
        expect(seen).toBe(make === statements.stillHeld ? 1 : 0);
      } finally {
        await other.query('ROLLBACK');
      }
    });
  });

  it.each([
    ['a completion', statements.complete],
    ['the record of a step in a transaction', statements.recordStepInTransaction],
  ])('%s whose record is gone is refused, and makes none', async (_, make) => {
    const [request, token] = await recordIn('claimed');
    expect(await run(statements.release(request, token))).toBe(1);
    expect(await run(make(request, token))).toBe(0);
    expect(await rowOf(request)).toBeUndefined();
  });

  it('takes no claim over whose lease runs', async () => {
    const request = claimRequest();
    const { ownerToken } = await claim(opened.store, request);
    expect(await run(TAKE_OVER.make(request, ownerToken))).toBe(0);
  });

  it('gives no key back once a step is recorded', async () => {
    const [request, token] = await recordIn('claimed', true);
    expect(await run(statements.release(request, token))).toBe(0);
    expect(await rowOf(request)).toBeDefined();
  });

  it('parks only what is half finished, was tried often enough, and has no lease any more', async () => {
    const [request, token] = await recordIn('claimed');
    expect(await run(statements.park(request, token))).toBe(0);
    await setRecoveryPoint(request);
    expect(await run(statements.park(request, token, 2))).toBe(0);
    await opened.database.rows(
      `UPDATE idempotency_record SET lease_until = now() + interval '1 minute' WHERE id = $1`,
      [idOf(request)],
    );
    expect(await run(statements.park(request, token))).toBe(0);
    await opened.endLease(request);
    expect(await run(statements.park(request, token))).toBe(1);
  });

  it.each([
    ['a renewal', statements.renew],
    ['the end of a lease', statements.endLease],
  ])('%s with a stale token keeps the row from nobody while the rest of its batch takes time', async (_, make) => {
    const [taken, stale] = await recordIn('claimed');
    const { ownerToken } = await claim(opened.store, taken);
    const [own, ownToken] = await recordIn('claimed');
    const batch = [make(taken, stale), make(own, ownToken)].map(
      ({ values }) => JSON.parse(String(values[0])) as object[],
    );
    await other.query('BEGIN');
    try {
      await other.query(make(own, ownToken).text, [JSON.stringify(batch.flat())]);
      expect(await run(statements.renew(taken, ownerToken))).toBe(1);
    } finally {
      await other.query('ROLLBACK');
    }
  });

  it('asks only after attempts whose lease runs and whose record is claimed', async () => {
    const running = claimRequest();
    await claim(opened.store, running);
    const ended = claimRequest();
    await claim(opened.store, ended);
    await opened.endLease(ended);
    const completed = claimRequest();
    await complete(opened.store, await claim(opened.store, completed), answerOf('done'));

    expect(await run(statements.stillRunning(running))).toBe(1);
    expect(await run(statements.stillRunning(ended))).toBe(0);
    expect(await run(statements.stillRunning(completed))).toBe(0);
    expect(await run(statements.stillRunning(claimRequest()))).toBe(0);
  });
});
