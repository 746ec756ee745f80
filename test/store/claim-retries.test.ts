import type { SqlClient } from '../../src/idempotency/index';
import { INSERT_CLAIM, TAKE_OVER_IF_EXPIRED } from '../../src/idempotency/store/sql/claim';
import { END_LEASES_IF_HELD } from '../../src/idempotency/store/sql/lease';
import { LOOK_UP } from '../../src/idempotency/store/sql/look-up';
import { claimRequest } from '../support/claim-requests';
import { connectionTerminated, postgresCause, statementError } from '../support/database-errors';
import { deferred } from '../support/deferred';
import { failWrites } from '../support/failing-writes';
import { claim, openTestStore, type TestStore } from '../support/store';
import { until } from '../support/until';

/** What happens to the answer of one statement. */
type Intervene = (run: () => Promise<unknown>, time: number) => Promise<unknown>;

describe('a claim that the database makes difficult (design 4.6)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  /** A connection that does something else with one of the statements; `times` says how often it was asked to. */
  const intervening = (statement: string, intervene: Intervene) => {
    const seen = { times: 0 };
    const records: SqlClient = {
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        const run = () => opened.connections.store.$queryRawUnsafe<Rows>(query, ...values);
        if (query !== statement) return run();
        seen.times += 1;
        return (await intervene(run, seen.times)) as Rows;
      },
    };
    return { records, seen };
  };

  const losingTheFirstAnswer =
    (error: Error): Intervene =>
    async (run, time) => {
      const answer = await run();
      if (time === 1) throw error;
      return answer;
    };

  const losses: readonly [string, Error][] = [
    ['57P01', statementError(postgresCause('57P01'))],
    ['a reset connection', statementError({ kind: 'ConnectionClosed' })],
    ['an ended connection', connectionTerminated()],
    ['08006', statementError(postgresCause('08006'))],
  ];

  it.each(losses)('is granted when it was carried out and its answer was lost to %s (case B3)', async (_, error) => {
    const request = claimRequest();
    const { records, seen } = intervening(INSERT_CLAIM, losingTheFirstAnswer(error));
    const store = await opened.open({ records });

    expect(await store.claim(request)).toMatchObject({ kind: 'granted', takeover: false, claim: { attempt: 1 } });

    expect(seen.times).toBe(2);
    expect(await opened.record(request)).toMatchObject({ state: 'claimed', attempt: 1 });
  });

  it('is granted as a takeover when the answer of that was lost', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await opened.endLease(request);
    const { records } = intervening(TAKE_OVER_IF_EXPIRED, losingTheFirstAnswer(connectionTerminated()));
    const store = await opened.open({ records });

    expect(await store.claim(request)).toMatchObject({ kind: 'granted', takeover: true, claim: { attempt: 2 } });
    expect(await opened.record(request)).toMatchObject({ attempt: 2 });
  });

  it('is not granted by a row of somebody else, though its own answer was lost', async () => {
    const request = claimRequest();
    const { ownerToken } = await claim(opened.store, request);
    const { records } = intervening(INSERT_CLAIM, losingTheFirstAnswer(connectionTerminated()));
    const store = await opened.open({ records });

    expect(await store.claim(request)).toMatchObject({ kind: 'in_progress' });
    expect(await opened.record(request)).toMatchObject({ attempt: 1, owner_token: ownerToken });
  });

  it.each(['40001', '40P01'])('is granted after %s has chosen it a few times (case K4)', async (sqlState) => {
    const request = claimRequest();
    const failing = await failWrites(opened.database, { ...INSERTED, sqlState, times: 3 });
    try {
      expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', claim: { attempt: 1 } });
      expect(await failing.tried()).toBe(4);
    } finally {
      await failing.remove();
    }
    expect(await opened.record(request)).toMatchObject({ state: 'claimed', attempt: 1 });
  });

  it('is given up when that does not end, and the key is free afterwards', async () => {
    const request = claimRequest();
    const failing = await failWrites(opened.database, { ...INSERTED, sqlState: '40001' });
    try {
      expect(await opened.store.claim(request)).toMatchObject({ kind: 'unavailable' });
      expect(await failing.tried()).toBe(5);
    } finally {
      await failing.remove();
    }
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted' });
  });

  it('is not repeated after an error that a repeat does not cure', async () => {
    const failing = await failWrites(opened.database, { ...INSERTED, sqlState: '23514' });
    try {
      expect(await opened.store.claim(claimRequest())).toMatchObject({ kind: 'unavailable' });
      expect(await failing.tried()).toBe(1);
    } finally {
      await failing.remove();
    }
  });

  it('starts over when the record it ran into has gone', async () => {
    const request = claimRequest();
    const { records, seen } = intervening(INSERT_CLAIM, async (run, time) => (time === 1 ? [] : run()));
    const store = await opened.open({ records });

    expect(await store.claim(request)).toMatchObject({ kind: 'granted' });
    expect(seen.times).toBe(2);
  });

  it('sends the caller back when records come and go under it without end', async () => {
    const { records, seen } = intervening(INSERT_CLAIM, async () => []);
    const store = await opened.open({ records });

    expect(await store.claim(claimRequest())).toMatchObject({ kind: 'in_progress', leaseLeftMs: 0 });
    expect(seen.times).toBe(5);
  });

  it('is unavailable, and no exception, where a look-up gives nothing', async () => {
    const { records } = intervening(LOOK_UP, async () => []);
    const request = claimRequest();
    await claim(opened.store, request);

    expect(await (await opened.open({ records })).claim(request)).toMatchObject({ kind: 'unavailable' });
  });

  it('is given back where its statement arrives after the first try to do so (design 4.6, case B3)', async () => {
    const request = claimRequest();
    let arrive: (() => Promise<unknown>) | undefined;
    const released = deferred();
    const records: SqlClient = {
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        const run = () => opened.connections.store.$queryRawUnsafe<Rows>(query, ...values);
        if (query === INSERT_CLAIM) {
          arrive = run;
          throw connectionTerminated();
        }
        const rows = await run();
        // The last statement of a try.
        if (query === END_LEASES_IF_HELD) released.resolve();
        return rows;
      },
    };
    const store = await opened.open({ records });
    expect(await store.claim(request)).toMatchObject({ kind: 'unavailable' });
    await released.promise;
    await arrive?.();
    expect(await opened.record(request)).toMatchObject({ state: 'claimed' });

    await until('the key is free again', async () => (await opened.record(request)) === undefined);
  });
});

const INSERTED = { table: 'idempotency_record', write: 'INSERT' } as const;
