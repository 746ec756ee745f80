import type { PoolClient } from 'pg';
import { connect } from '../../src/database/connect';
import { openPostgresStore } from '../../src/idempotency/index';
import { claimRequest, policyOf } from '../support/claim-requests';
import {
  answerOf,
  claim,
  complete,
  idOf,
  LIMITS,
  openTestStore,
  type PaymentsStore,
  type TestStore,
} from '../support/store';
import { until } from '../support/until';

/** What the statements on a record ran with. */
interface Observed {
  readonly operation: string;
  readonly durable: string;
  readonly patience: string;
  readonly idle: string;
}

describe('the settings of the statements on a record (design 4.6, 4.8)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
    await opened.database.rows(`
      CREATE TABLE observed (operation text, durable text, patience text, idle text);
      CREATE FUNCTION observe() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO observed VALUES (TG_OP, current_setting('synchronous_commit'), current_setting('lock_timeout'),
          current_setting('idle_in_transaction_session_timeout'));
        RETURN NULL;
      END $$;
      CREATE TRIGGER observe AFTER INSERT OR UPDATE ON idempotency_record FOR EACH ROW EXECUTE FUNCTION observe();`);
  });

  afterAll(() => opened.close());

  const observedWhile = async (work: () => Promise<unknown>): Promise<Observed[]> => {
    await opened.database.rows('TRUNCATE observed');
    await work();
    return opened.database.rows<Observed & Record<string, unknown>>('SELECT * FROM observed');
  };

  const withStore = async <R>(durable: string, work: (store: PaymentsStore) => Promise<R>): Promise<R> => {
    const url = new URL(opened.database.connectionString);
    url.searchParams.set('options', `-c synchronous_commit=${durable}`);
    const { business, store: records, close } = connect({ connectionString: url.href, storePoolSize: 1 });
    try {
      return await work(await openPostgresStore({ business, records, policies: [policyOf('CreatePayment')] }));
    } finally {
      await close();
    }
  };

  it('a claim need not reach the disk, waits two seconds at most, and leaves nothing set behind it', async () => {
    const [observed] = await observedWhile(() => opened.store.claim(claimRequest()));

    expect(observed).toMatchObject({ operation: 'INSERT', durable: 'off', patience: '2s' });
    const left = await opened.connections.store.$queryRawUnsafe(
      `SELECT current_setting('synchronous_commit') AS durable, current_setting('lock_timeout') AS patience`,
    );
    expect(left).toEqual([{ durable: 'on', patience: '0' }]);
  });

  it('a takeover likewise', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await opened.endLease(request);

    const [observed] = await observedWhile(() => claim(opened.store, request));

    expect(observed).toMatchObject({ operation: 'UPDATE', durable: 'off', patience: '2s' });
  });

  it.each([
    ['off', 'on'],
    ['local', 'on'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('a completion in a session of synchronous_commit %s commits with %s', async (session, durable) => {
    const [, observed] = await observedWhile(() =>
      withStore(session, async (store) => complete(store, await claim(store, claimRequest()), answerOf('done'))),
    );

    expect(observed).toMatchObject({ operation: 'UPDATE', durable });
  });

  it('a completion bounds how long its transaction may stand still with the record in its hands', async () => {
    const claimed = await claim(opened.store, claimRequest());

    const [observed] = await observedWhile(() => complete(opened.store, claimed, answerOf('done')));

    expect(observed?.idle).toBe(`${LIMITS.timeoutMs / 1000}s`);
  });
});

describe('a claim that meets a completion which has not committed yet (design 4.6)', () => {
  let opened: TestStore;
  let completer: PoolClient;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  beforeEach(async () => {
    completer = await opened.database.pool.connect();
    await completer.query('BEGIN');
  });

  afterEach(async () => {
    await completer.query('ROLLBACK');
    completer.release();
  });

  afterAll(() => opened.close());

  const completeWithoutCommit = (requestId: string) =>
    completer.query(
      `UPDATE idempotency_record SET state = 'completed', completed_at = now(), status_code = 0 WHERE request_id = $1`,
      [requestId],
    );

  it('does not wait for it: it says what is committed, and how much lease is left', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await completeWithoutCommit(request.key.text);

    const outcome = await opened.store.claim(request);

    expect(outcome.kind).toBe('in_progress');
    // Zero is what a claim says that ran out of patience.
    expect(outcome.kind === 'in_progress' && outcome.leaseLeftMs).toBeGreaterThan(0);
  });

  it('does not wait for it where the lease is over either, and says that it is still running', async () => {
    const request = claimRequest();
    const { ownerToken } = await claim(opened.store, request);
    await opened.endLease(request);
    await completeWithoutCommit(request.key.text);

    const askedAt = performance.now();
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'in_progress', leaseLeftMs: 0 });
    // Who waits for the row gives up after two seconds at the earliest.
    expect(performance.now() - askedAt).toBeLessThan(1_900);

    await completer.query('COMMIT');
    expect(await opened.record(request)).toMatchObject({ state: 'completed', attempt: 1, owner_token: ownerToken });
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed' });
  });

  const claimWithoutCommit = async (requestId: string, id: string): Promise<void> => {
    const seed = claimRequest();
    await claim(opened.store, seed);
    await completer.query(
      `INSERT INTO idempotency_record
         (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id, instance)
       SELECT created_at, lease_until, bucket, attempt, method, $2, owner_token, state, fingerprint, scope, $3, instance
       FROM idempotency_record WHERE request_id = $1`,
      [seed.key.text, id, requestId],
    );
  };

  it('waits a bounded time for the first claim of its key, too', async () => {
    const request = claimRequest();
    await claimWithoutCommit(request.key.text, idOf(request));

    expect(await opened.store.claim(request)).toMatchObject({ kind: 'in_progress', leaseLeftMs: 0 });
  });

  it('finds the first claim of its key when that commits meanwhile (case A2)', async () => {
    const request = claimRequest();
    await claimWithoutCommit(request.key.text, idOf(request));

    const outcome = opened.store.claim(request);
    await until('the claim waits for the other one', async () => {
      const waiting = await opened.database.rows(`
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO%'`);
      return waiting.length === 1;
    });
    await completer.query('COMMIT');

    expect(await outcome).toMatchObject({ kind: 'in_progress' });
    const leaseLeftMs = await outcome.then((found) => (found.kind === 'in_progress' ? found.leaseLeftMs : 0));
    expect(leaseLeftMs).toBeGreaterThan(0);
  });
});
