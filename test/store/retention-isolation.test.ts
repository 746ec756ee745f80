import { connect } from '../../src/database/connect';
import { runRetention } from '../../src/idempotency/index';
import { INSERT_CLAIM } from '../../src/idempotency/store/sql/claim';
import { policyOf } from '../support/claim-requests';
import { daysAgo, makeDay, requestOf } from '../support/old-days';
import { answerOf, idOf, openTestStore, TERMS, transactUnlessFenced } from '../support/store';

const DAY_MS = 24 * 3_600_000;

describe('a day on its way out (design 4.11)', () => {
  it.each(['RepeatableRead', 'Serializable'] as const)(
    'takes a completion of %s, which sees it as it was: one effect, and the day goes with its answer',
    async (isolationLevel) => {
      const policy = policyOf('CreatePayment', { maxKeyAgeMs: DAY_MS, retentionMs: DAY_MS });
      const { store, database, close } = await openTestStore([policy]);
      const url = new URL(database.connectionString);
      url.searchParams.set('options', '-c lock_timeout=600');
      const impatient = connect({ connectionString: url.href });
      const run = () => runRetention({ client: impatient.store });
      const other = await database.pool.connect();
      try {
        await database.rows('CREATE TABLE effect (request_id text)');
        const due = await daysAgo(database, 3);
        await makeDay(database, due);
        const { key, scope, fingerprint, ...request } = requestOf(due);
        const place = { bucket: key.bucket, id: idOf({ key, scope, fingerprint, ...request }) };
        const ownerToken = 'a1a1a1a1-0000-4000-8000-000000000002';
        await other.query('BEGIN');
        await other.query(INSERT_CLAIM, [
          ...[place.bucket, place.id, key.dated?.atMs, request.policy.maxKeyAgeMs, 30_000, 1, ownerToken, fingerprint],
          ...[scope, key.text, 'stalled process', null],
        ]);
        expect(await run()).toMatchObject({ dropped: [], postponed: [due], faults: [] });
        await other.query('COMMIT');

        const held = { ...place, ownerToken, attempt: 1, expiresAt: new Date() };
        const isCompleted = await transactUnlessFenced(
          store,
          async (tx) => {
            await tx.$executeRaw`INSERT INTO effect VALUES (${key.text})`;
            await store.completeIfHeld(tx, held, answerOf('paid'), TERMS);
          },
          isolationLevel,
        );

        expect(isCompleted).toBe(true);
        expect(await store.claim(requestOf(due))).toEqual({ kind: 'expired' });
        expect(await run()).toMatchObject({ dropped: [due], heldBack: [], faults: [] });
        expect(await database.rows('SELECT request_id FROM effect')).toEqual([{ request_id: key.text }]);
      } finally {
        await other.query('ROLLBACK');
        other.release();
        await impatient.close();
        await close();
      }
    },
  );
});
