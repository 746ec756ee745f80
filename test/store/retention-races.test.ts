import type { PoolClient } from 'pg';
import { connect, type Database } from '../../src/database/connect';
import type { Prisma } from '../../src/gen/prisma/client';
import { type RetentionEvent, runRetention } from '../../src/idempotency/index';
import { dropDays } from '../../src/idempotency/store/retention-drop';
import { INSERT_CLAIM } from '../../src/idempotency/store/sql/claim';
import type { ClaimRequest, HeldClaim } from '../../src/idempotency/store/store';
import { claimRequest, policyOf } from '../support/claim-requests';
import { daysAgo, droppedThrough, makeDay, requestOf, stagesOf, tableOf } from '../support/old-days';
import { answerOf, claim, idOf, openTestStore, TERMS, type TestStore, transactUnlessFenced } from '../support/store';
import { until } from '../support/until';

const DAY_MS = 24 * 3_600_000;
const POLICY = policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS, retentionMs: DAY_MS });

/** How long the maintainers of these tests wait for a lock, milliseconds. */
const PATIENCE_MS = 600;

/** What any statement that writes records holds until its transaction ends. */
const HOLD_RECORDS = 'LOCK TABLE idempotency_record IN ROW EXCLUSIVE MODE';

describe('a day that is over, while others use the records', () => {
  let opened: TestStore;
  let impatient: Database;
  let due: string;
  let other: PoolClient;

  beforeEach(async () => {
    opened = await openTestStore([POLICY]);
    due = await daysAgo(opened.database, 3);
    await makeDay(opened.database, due);
    const url = new URL(opened.database.connectionString);
    url.searchParams.set('options', `-c lock_timeout=${PATIENCE_MS}`);
    impatient = connect({ connectionString: url.href });
    other = await opened.database.pool.connect();
    await opened.database.rows('CREATE TABLE effect (request_id text)');
  });

  afterEach(async () => {
    await other.query('ROLLBACK');
    other.release();
    await impatient.close();
    await opened.close();
  });

  const run = () => runRetention({ client: impatient.store });

  /** Completes with an effect beside the answer. */
  const completeWithEffect = (request: ClaimRequest, held: HeldClaim): Promise<boolean> => {
    const work = async (tx: Prisma.TransactionClient): Promise<void> => {
      await tx.$executeRaw`INSERT INTO effect VALUES (${request.key.text})`;
      await opened.store.completeIfHeld(tx, held, answerOf('paid'), TERMS);
    };
    return transactUnlessFenced(opened.store, work, 'ReadCommitted');
  };

  /** The insert of a claim, on a connection that does not commit by itself. */
  const insertClaim = async (client: PoolClient, request: ClaimRequest, token: string): Promise<number> => {
    const { policy, key, scope, fingerprint } = request;
    const { rowCount } = await client.query(INSERT_CLAIM, [
      ...[key.bucket, idOf(request), key.dated?.atMs, policy.maxKeyAgeMs, policy.leaseMs, 1, token, fingerprint, scope],
      ...[key.text, 'stalled process', null],
    ]);
    return rowCount ?? 0;
  };

  it('keeps no claim waiting while a business transaction is open, waits for that one, and goes when it has ended', async () => {
    await runRetention({ client: opened.connections.maintenance, exportDay: () => Promise.reject(new Error('first')) });
    const nextDue = await daysAgo(opened.database, 4);
    await makeDay(opened.database, nextDue);
    const open = claimRequest();
    await claim(opened.store, open);
    await other.query('BEGIN');
    await other.query(
      `UPDATE idempotency_record SET state = 'completed', completed_at = now(), status_code = 0 WHERE request_id = $1`,
      [open.key.text],
    );

    const startedAt = performance.now();
    let isOver = false;
    const round = run().finally(() => (isOver = true));
    const latencies: number[] = [];
    const claimAll = async (): Promise<void> => {
      while (!isOver) {
        const claimedAt = performance.now();
        const request = claimRequest();
        expect(await completeWithEffect(request, await claim(opened.store, request))).toBe(true);
        latencies.push(performance.now() - claimedAt);
      }
    };
    const kept = new Set<string>();
    const look = async (): Promise<void> => {
      while (!isOver) {
        const waiting = await opened.database.rows<{ query: string }>(
          `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        for (const { query } of waiting) kept.add(query.replace(/idempotency_record_d\d+/, 'day'));
      }
    };
    await Promise.all([claimAll(), look()]);

    expect(await round).toMatchObject({ dropped: [], postponed: [nextDue], faults: [] });
    expect(await stagesOf(opened.database)).toHaveProperty(nextDue, 'detaching');
    // It did wait, three times its patience, and nobody else did.
    expect(performance.now() - startedAt).toBeGreaterThan(3 * PATIENCE_MS);
    expect([...kept].sort()).toEqual([
      'ALTER TABLE idempotency_record DETACH PARTITION day CONCURRENTLY',
      'ALTER TABLE idempotency_record DETACH PARTITION day FINALIZE',
    ]);
    latencies.sort((one, other) => one - other);
    expect(latencies[Math.floor(latencies.length / 2)]).toBeLessThan(PATIENCE_MS / 2);

    await other.query('COMMIT');
    expect(await run()).toMatchObject({ dropped: [nextDue, due], postponed: [], faults: [] });
  });

  it('does not keep other days from being made while it waits', async () => {
    const last = await daysAgo(opened.database, -7);
    await other.query(`BEGIN; ${HOLD_RECORDS}`);
    expect(await run()).toMatchObject({
      created: expect.arrayContaining([last]) as unknown,
      postponed: [due],
      faults: [],
    });
    await other.query('ROLLBACK');
    await opened.database.rows(`DROP TABLE ${tableOf(last)}`);
    await other.query(`BEGIN; ${HOLD_RECORDS}`);

    expect(await run()).toMatchObject({ created: [last], postponed: [due], faults: [] });
    expect(await stagesOf(opened.database)).toMatchObject({ [due]: 'detaching', [last]: 'attached' });
  });

  it.each(['forgotten', 'detaching', 'detached'])(
    'goes in the next round after a crash that left it %s',
    async (stage) => {
      const request = requestOf(due);
      await completeWithEffect(request, await claim(opened.store, request));
      await opened.database.rows('UPDATE idempotency_retention SET dropped_through = $1', [due]);
      if (stage === 'detaching') {
        await other.query(`BEGIN; ${HOLD_RECORDS}`);
        const detach = impatient.store.$queryRawUnsafe(
          `ALTER TABLE idempotency_record DETACH PARTITION ${tableOf(due)} CONCURRENTLY`,
        );
        const [failed] = await Promise.allSettled([
          detach,
          until('the detach waits', async () => {
            const waiting = await opened.database.rows<{ pid: number }>(
              `SELECT pid FROM pg_stat_activity WHERE query LIKE '%DETACH%CONCURRENTLY' AND wait_event_type = 'Lock'
             AND datname = current_database()`,
            );
            for (const { pid } of waiting) await opened.database.rows('SELECT pg_terminate_backend($1)', [pid]);
            return waiting.length > 0;
          }),
        ]);
        expect(failed?.status).toBe('rejected');
        await other.query('ROLLBACK');
      }
      if (stage === 'detached') {
        await opened.database.rows(`ALTER TABLE idempotency_record DETACH PARTITION ${tableOf(due)} CONCURRENTLY`);
      }
      expect(await stagesOf(opened.database)).toHaveProperty(due, stage === 'forgotten' ? 'attached' : stage);
      expect((await opened.store.claim(request)).kind).toBe(stage === 'forgotten' ? 'completed' : 'expired');

      expect(await run()).toMatchObject({ dropped: [due], postponed: [], faults: [] });

      expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });
      expect(await opened.database.count('effect')).toBe(1);
    },
  );

  it('comes back with a claim that was judged before it was forgotten and commits after: its attempt is the only one', async () => {
    const request = requestOf(due);
    const ownerToken = 'a1a1a1a1-0000-4000-8000-000000000001';
    await other.query('BEGIN');
    expect(await insertClaim(other, request, ownerToken)).toBe(1);
    const held = { bucket: request.key.bucket, id: idOf(request), ownerToken, attempt: 1, expiresAt: new Date() };

    expect(await run()).toMatchObject({ dropped: [], postponed: [due], faults: [] });
    expect(await droppedThrough(opened.database)).toBe(due);
    expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });

    await other.query('COMMIT');
    // On its way out, the day takes no completion; that it was refused is told, and nothing of it is kept.
    expect(await completeWithEffect(request, held)).toBe(false);
    expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });
    expect(await opened.database.count('effect')).toBe(0);

    expect(await run()).toMatchObject({ dropped: [], heldBack: [due], faults: [] });
    expect(await stagesOf(opened.database)).toHaveProperty(due, 'attached');
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'in_progress' });
    expect(await completeWithEffect(request, held)).toBe(true);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed', answer: answerOf('paid') });

    expect(await run()).toMatchObject({ dropped: [due], faults: [] });
    expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });
    expect(await opened.database.rows('SELECT request_id FROM effect')).toEqual([{ request_id: request.key.text }]);
  });

  it('is not even detached while an attempt runs in it: its completion finds the record at any time', async () => {
    const request = requestOf(due);
    const held = await claim(opened.store, request);
    await other.query(`BEGIN; ${HOLD_RECORDS}`);

    expect(await run()).toMatchObject({ dropped: [], postponed: [], heldBack: [due], faults: [] });

    expect(await stagesOf(opened.database)).toHaveProperty(due, 'attached');
    expect(await completeWithEffect(request, held)).toBe(true);
  });

  it('is not revived by a process that slept over the drop with an old view of the database', async () => {
    const request = requestOf(due);
    await completeWithEffect(request, await claim(opened.store, request));
    await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await other.query('SELECT 1 AS snapshot');

    expect(await run()).toMatchObject({ dropped: [due], faults: [] });

    // What it sees says that the day is not forgotten, and holds no record; there is no place for one either.
    await expect(insertClaim(other, request, 'a1a1a1a1-0000-4000-8000-000000000001')).rejects.toThrow('no partition');
    await other.query('ROLLBACK');
    expect(await opened.database.count('idempotency_record')).toBe(0);
    expect(await run()).toMatchObject({ created: [], dropped: [] });
    expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });
    expect(await opened.database.count('effect')).toBe(1);
  });

  it('has its late writes seen: one that got hold of the detached table is waited for, and holds it back', async () => {
    const request = requestOf(due);
    const held = await claim(opened.store, request);
    await opened.endLease(request);

    const exportDay = async (): Promise<void> => {
      await other.query('BEGIN');
      await other.query(`UPDATE ${tableOf(due)} SET lease_until = now() + interval '1 minute'`);
      const committed = until('the drop waits for the writer', async () => {
        const waiting = await opened.database.count(
          `pg_stat_activity WHERE query LIKE 'LOCK TABLE%' AND wait_event_type = 'Lock' AND datname = current_database()`,
        );
        return waiting > 0;
      }).then(() => other.query('COMMIT'));
      committed.catch(() => undefined);
    };
    const report = await runRetention({ client: opened.connections.maintenance, exportDay });

    expect(report).toMatchObject({ dropped: [], heldBack: [due], faults: [] });
    expect(await completeWithEffect(request, held)).toBe(true);
    expect(await opened.database.count('effect')).toBe(1);
  });

  it('is tried again when the database ends a deadlock with another maintainer at the expense of the drop', async () => {
    await other.query(`SET deadlock_timeout = '1min'`);
    await other.query('BEGIN');
    await other.query(`LOCK TABLE ${tableOf(due)} IN SHARE UPDATE EXCLUSIVE MODE`);
    const round = runRetention({ client: opened.connections.maintenance });
    await until('the detach waits for the day', async () => {
      const waiting = await opened.database.count(
        `pg_stat_activity WHERE query LIKE '%DETACH%CONCURRENTLY' AND wait_event_type = 'Lock'
         AND datname = current_database()`,
      );
      return waiting > 0;
    });
    // Granted once the database has refused the detach.
    await other.query('LOCK TABLE ONLY idempotency_record IN SHARE UPDATE EXCLUSIVE MODE');
    await other.query('COMMIT; RESET deadlock_timeout');
    const [{ deadlocks } = { deadlocks: 0 }] = await opened.database.rows<{ deadlocks: number }>(
      `SELECT pg_stat_get_db_deadlocks(oid)::int AS deadlocks FROM pg_database WHERE datname = current_database()`,
    );

    expect(deadlocks).toBe(1);
    expect(await round).toMatchObject({ dropped: [due], postponed: [], faults: [] });
  });

  it('goes once, whole, though four processes all believe that they are to drop it', async () => {
    const days = [due];
    for (let ago = 4; ago <= 7; ago += 1) days.unshift(await daysAgo(opened.database, ago));
    for (const day of days.slice(0, -1)) await makeDay(opened.database, day);
    for (const day of days) {
      await claim(opened.store, requestOf(day));
      await opened.database.rows(
        `UPDATE ${tableOf(day)} SET lease_until = now(), recovery_point = 'draft', results = '\\x01'`,
      );
    }
    const processes = Array.from({ length: 4 }, () => connect({ connectionString: opened.database.connectionString }));
    const events: RetentionEvent[] = [];

    const drop = async ({ maintenance }: Database): Promise<void> =>
      dropDays({ client: maintenance, onEvent: (event) => events.push(event), mayGoOn: () => true });
    await Promise.all(processes.map(drop));
    // What they kept each other from is done by the next round.
    for (const process of processes) await drop(process);

    const dropped = events.filter(({ type }) => type === 'day_dropped');
    expect(dropped.map((event) => 'day' in event && event.day).sort()).toEqual(days);
    expect(await opened.database.count('idempotency_record_kept')).toBe(days.length);
    expect(await stagesOf(opened.database)).toEqual({});
    await Promise.all(processes.map((process) => process.close()));
  });
});
