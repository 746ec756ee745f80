import type { SqlClient } from '../../src/idempotency/index';
import { LOOK_UP } from '../../src/idempotency/store/sql/look-up';
import { CONFIRM_COMPLETION, TAKE_TOKEN_AWAY_IF_HELD } from '../../src/idempotency/store/sql/settle';
import type { ClaimRequest, HeldClaim, Settlement } from '../../src/idempotency/store/store';
import { claimRequest } from '../support/claim-requests';
import { connectionTerminated, postgresCause, statementError } from '../support/database-errors';
import { failWrites } from '../support/failing-writes';
import { answerOf, claim, complete, openTestStore, type PaymentsStore, type TestStore } from '../support/store';

/** What happens to the answer of one statement. */
type Intervene = (run: () => Promise<unknown>, time: number) => Promise<unknown>;

describe('a settlement whose own statements meet trouble (design 4.8)', () => {
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

  const settle = (store: PaymentsStore = opened.store, withinMs = 15_000): Promise<Settlement> =>
    store.settle(request, claimed, withinMs);

  /** A connection that does something else with one of the statements. */
  const intervening = async (statement: string, intervene: Intervene) => {
    const seen = { times: 0 };
    const records: SqlClient = {
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        const run = () => opened.connections.store.$queryRawUnsafe<Rows>(query, ...values);
        if (query !== statement) return run();
        seen.times += 1;
        return (await intervene(run, seen.times)) as Rows;
      },
    };
    return { store: await opened.open({ records }), seen };
  };

  const losingTheFirstAnswer: Intervene = async (run, time) => {
    const answer = await run();
    if (time === 1) throw connectionTerminated();
    return answer;
  };

  it('recognises what it did when the answer to that was lost', async () => {
    const { store, seen } = await intervening(TAKE_TOKEN_AWAY_IF_HELD, losingTheFirstAnswer);

    const settlement = await settle(store);

    expect(seen.times).toBe(2);
    if (settlement.kind !== 'never_committed') throw new Error(settlement.kind);
    const { ownerToken } = settlement.claim;
    expect(await opened.record(request)).toMatchObject({ state: 'claimed', owner_token: ownerToken });
    expect(await complete(opened.store, claimed, answerOf('late'))).toBe(false);
  });

  it.each([
    ['what it read', LOOK_UP],
    ['the confirmation', CONFIRM_COMPLETION],
  ])('asks again when the answer to %s was lost', async (_, statement) => {
    await complete(opened.store, claimed, answerOf('done'));
    const { store, seen } = await intervening(statement, losingTheFirstAnswer);

    expect(await settle(store)).toEqual({ kind: 'committed' });

    expect(seen.times).toBe(2);
  });

  it('does not take a completion for confirmed that is no more', async () => {
    await complete(opened.store, claimed, answerOf('done'));
    const { store } = await intervening(CONFIRM_COMPLETION, async (run) => {
      await opened.database.rows(`UPDATE idempotency_record SET state = 'expired' WHERE request_id = $1`, [
        request.key.text,
      ]);
      return run();
    });

    expect(await settle(store)).toEqual({ kind: 'lost' });
  });

  it.each(['40001', '40P01'])('is repeated after %s (case K4)', async (sqlState) => {
    const failing = await failWrites(opened.database, {
      ...{ table: 'idempotency_record', write: 'UPDATE', sqlState, times: 3 },
    });
    try {
      expect(await settle()).toMatchObject({ kind: 'never_committed' });
      expect(await failing.tried()).toBe(4);
    } finally {
      await failing.remove();
    }
  });

  it('is not known after an error that a repeat does not cure, and is not repeated', async () => {
    const error = statementError(postgresCause('42501'));
    const { store, seen } = await intervening(TAKE_TOKEN_AWAY_IF_HELD, () => Promise.reject(error));

    expect(await settle(store)).toEqual({ kind: 'unsettled', error });
    expect(seen.times).toBe(1);
  });

  it('is not known when the store can not be reached in time, and says so in time', async () => {
    const { store, seen } = await intervening(TAKE_TOKEN_AWAY_IF_HELD, () => Promise.reject(connectionTerminated()));
    const startedAt = performance.now();

    expect(await settle(store, 300)).toMatchObject({ kind: 'unsettled' });

    expect(seen.times).toBeGreaterThan(1);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it('is not known when a statement gives no answer at all, and says so in time', async () => {
    const { store } = await intervening(TAKE_TOKEN_AWAY_IF_HELD, () => new Promise(() => undefined));
    const startedAt = performance.now();

    expect(await settle(store, 300)).toMatchObject({ kind: 'unsettled' });

    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
