import { connect } from '../../src/database/connect';
import { openPostgresStore } from '../../src/idempotency/index';
import type { ClaimRequest, HeldClaim, Settlement } from '../../src/idempotency/store/store';
import { claimRequest, policyOf } from '../support/claim-requests';
import { openCompletion } from '../support/open-completion';
import { statementsWaiting } from '../support/record-hold';
import { answerOf, claim, complete, openTestStore, type PaymentsStore, type TestStore } from '../support/store';

/** How long a settlement of these tests may take, milliseconds; far longer than it does. */
const WITHIN_MS = 15_000;

describe('the settlement of a commit whose answer was lost (design 4.8)', () => {
  let opened: TestStore;
  let request: ClaimRequest;
  let claimed: HeldClaim;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  beforeEach(async () => {
    request = claimRequest();
    claimed = await claim(opened.store, request);
  });

  afterAll(() => opened.close());

  const settle = (store: PaymentsStore = opened.store, withinMs = WITHIN_MS): Promise<Settlement> =>
    store.settle(request, claimed, withinMs);

  const setRecord = (change: string): Promise<unknown> =>
    opened.database.rows(`UPDATE idempotency_record SET ${change} WHERE request_id = $1`, [request.key.text]);

  const replacementOf = (settlement: Settlement): HeldClaim => {
    if (settlement.kind !== 'never_committed') throw new Error(`not never_committed but ${settlement.kind}`);
    return settlement.claim;
  };

  describe('that never happened', () => {
    it('takes the token away, so that it never will: a completion that comes late changes nothing', async () => {
      const replacement = replacementOf(await settle());

      expect(replacement).toEqual({ ...claimed, ownerToken: expect.any(String) as string });
      expect(replacement.ownerToken).not.toBe(claimed.ownerToken);
      expect(await complete(opened.store, claimed, answerOf('late'))).toBe(false);
      expect(await opened.store.releaseIfHeld(claimed)).toBe(false);
      expect(await opened.store.renewIfHeld([{ claim: claimed, leaseMs: 60_000 }])).toEqual(['lost']);
      expect(await opened.record(request)).toMatchObject({
        ...{ state: 'claimed', attempt: 1, owner_token: replacement.ownerToken, response: null },
      });
    });

    it('leaves the key with who settled, who can give it back; then another claims it', async () => {
      const replacement = replacementOf(await settle());
      expect(await opened.store.claim(request)).toMatchObject({ kind: 'in_progress' });

      expect(await opened.store.releaseIfHeld(replacement)).toBe(true);

      expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', claim: { attempt: 1 } });
      expect(await complete(opened.store, claimed, answerOf('late'))).toBe(false);
      expect(await complete(opened.store, replacement, answerOf('later'))).toBe(false);
    });

    it('touches its own record only, though the token fits another', async () => {
      const other = claimRequest();
      await claim(opened.store, other);
      await opened.database.rows('UPDATE idempotency_record SET owner_token = $1 WHERE request_id = $2', [
        claimed.ownerToken,
        other.key.text,
      ]);

      expect(await settle()).toMatchObject({ kind: 'never_committed' });

      expect(await opened.record(other)).toMatchObject({ owner_token: claimed.ownerToken });
    });
  });

  describe('that did happen', () => {
    it('is that, and changes nothing of what was recorded', async () => {
      await complete(opened.store, claimed, answerOf('done'));
      const before = await opened.record(request);

      expect(await settle()).toEqual({ kind: 'committed' });

      expect(await opened.record(request)).toEqual(before);
      expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed', answer: answerOf('done') });
    });

    it('is that too where its answer was not kept', async () => {
      await opened.store.transaction(
        (tx) => opened.store.completeIfHeld(tx, claimed, answerOf('large'), { idleMs: 5_000, keepAnswer: false }),
        { maxWaitMs: 5_000, timeoutMs: 5_000 },
      );

      expect(await settle()).toEqual({ kind: 'committed' });
    });

    it('is confirmed by a write that waits for the disk, in a session that would not', async () => {
      await complete(opened.store, claimed, answerOf('done'));
      await opened.database.rows(`
        CREATE TABLE observed (durable text);
        CREATE FUNCTION observe() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO observed VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
        CREATE TRIGGER observe AFTER UPDATE ON idempotency_record FOR EACH ROW EXECUTE FUNCTION observe();`);
      const url = new URL(opened.database.connectionString);
      url.searchParams.set('options', '-c synchronous_commit=off');
      const { business, store: records, close } = connect({ connectionString: url.href, storePoolSize: 1 });
      try {
        const store = await openPostgresStore({ business, records, policies: [policyOf('CreatePayment')] });
        expect(await settle(store)).toEqual({ kind: 'committed' });
        expect(await opened.database.rows('SELECT durable FROM observed')).toEqual([{ durable: 'on' }]);
      } finally {
        await close();
        await opened.database.rows('DROP FUNCTION observe CASCADE; DROP TABLE observed');
      }
    });
  });

  describe('that the server still works on', () => {
    it.each(['read committed', 'repeatable read', 'serializable'])(
      'waits for it, and is what it became: committed, %s',
      async (isolation) => {
        const completion = await openCompletion(opened.database, request);
        const url = new URL(opened.database.connectionString);
        url.searchParams.set('options', `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`);
        const { business, store: records, close } = connect({ connectionString: url.href });
        try {
          const store = await openPostgresStore({ business, records, policies: [policyOf('CreatePayment')] });
          const settlement = settle(store);
          await statementsWaiting(opened.database, 1);
          await completion.commit();
          expect(await settlement).toEqual({ kind: 'committed' });
        } finally {
          await close();
        }
        expect(await opened.record(request)).toMatchObject({ state: 'completed', owner_token: claimed.ownerToken });
      },
    );

    it('waits for it, and is what it became: rolled back', async () => {
      const completion = await openCompletion(opened.database, request);

      const settlement = settle();
      await statementsWaiting(opened.database, 1);
      await completion.rollBack();

      const { ownerToken } = replacementOf(await settlement);
      expect(await opened.record(request)).toMatchObject({ state: 'claimed', owner_token: ownerToken });
    });

    it('and is not done with in time, is not known: nothing is guessed, nothing changed', async () => {
      const completion = await openCompletion(opened.database, request);
      const startedAt = performance.now();

      expect(await settle(opened.store, 1_200)).toMatchObject({ kind: 'unsettled' });

      expect(performance.now() - startedAt).toBeLessThan(4_000);
      expect(await opened.record(request)).toMatchObject({ state: 'claimed', owner_token: claimed.ownerToken });
      await completion.commit();
      expect(await settle()).toEqual({ kind: 'committed' });
    });
  });

  describe('of a claim that is no longer its own', () => {
    const changes: readonly [string, string][] = [
      ['was taken over', 'owner_token = gen_random_uuid(), attempt = 2'],
      [
        'was taken over and completed',
        `owner_token = gen_random_uuid(), attempt = 2, state = 'completed', completed_at = now(), status_code = 0`,
      ],
      ['was parked', `state = 'parked'`],
      ['was expired', `state = 'expired'`],
      ['was given to another request', `owner_token = gen_random_uuid(), attempt = 1, fingerprint = '\\x0102'`],
    ];

    it.each(changes)('that %s is lost, and changes nothing', async (_, change) => {
      await setRecord(change);
      const before = await opened.record(request);

      expect(await settle()).toEqual({ kind: 'lost' });

      expect(await opened.record(request)).toEqual(before);
    });

    it('that is gone is lost', async () => {
      await opened.store.releaseIfHeld(claimed);

      expect(await settle()).toEqual({ kind: 'lost' });
      expect(await opened.record(request)).toBeUndefined();
    });

    it('since a takeover came first, is lost; since the settlement came first, there is a takeover later', async () => {
      await opened.endLease(request);
      const owner = await claim(opened.store, request);
      expect(await settle()).toEqual({ kind: 'lost' });
      expect(await complete(opened.store, owner, answerOf('owner'))).toBe(true);

      request = claimRequest();
      claimed = await claim(opened.store, request);
      await opened.endLease(request);
      const replacement = replacementOf(await settle());
      const taker = await claim(opened.store, request);
      expect(taker.attempt).toBe(2);
      expect(await opened.store.releaseIfHeld(replacement)).toBe(false);
      expect(await complete(opened.store, taker, answerOf('taker'))).toBe(true);
    });

    it('under an id that another key has too, is not known: nobody is told anything', async () => {
      await complete(opened.store, claimed, answerOf('done'));
      await setRecord(`scope = 'account-2'`);

      expect(await settle()).toMatchObject({ kind: 'unsettled' });
    });
  });
});
