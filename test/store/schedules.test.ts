import type { PoolClient } from 'pg';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest } from '../support/claim-requests';
import { exploreSchedules, type Program, type Schedule } from '../support/scheduler';
import { answerBy, calling, completing, doing, settling, takingOver } from '../support/scheduler-programs';
import * as statements from '../support/scheduler-statements';
import { claim, openTestStore, type TestStore } from '../support/store';

/** A key with an owner whose lease is over or runs. */
interface Owned {
  readonly request: ClaimRequest;
  readonly token: string;
}

/** What may be said of the outcomes of a run, beside what must be true of all. */
type Agree = (schedule: Schedule, owned: Owned) => void;

jest.setTimeout(90_000);

describe('real statements of several attempts, in every order', () => {
  let opened: TestStore;
  const connections: PoolClient[] = [];

  beforeAll(async () => {
    opened = await openTestStore();
    await opened.database.rows('CREATE TABLE effect (request_id text, answer text)');
    // The pool of the test has four: three for attempts, one to look on.
    for (let index = 0; index < 3; index += 1) connections.push(await opened.database.pool.connect());
  });

  afterAll(async () => {
    for (const client of connections) client.release();
    await opened.close();
  });

  const owned = async (lease: 'runs' | 'is over'): Promise<Owned> => {
    const request = claimRequest();
    const { ownerToken } = await claim(opened.store, request);
    if (lease === 'is over') await opened.endLease(request);
    return { request, token: ownerToken };
  };

  /** At most one effect, and it is the recorded answer, which is the only one that anybody was told. */
  const checkBooks = async (request: ClaimRequest, { order, outcomes }: Schedule): Promise<void> => {
    const [record] = await opened.database.rows<{ state: string; response: Buffer | null }>(
      'SELECT state, response FROM idempotency_record WHERE request_id = $1',
      [request.key.text],
    );
    const effects = await opened.database.rows<{ answer: string }>('SELECT answer FROM effect WHERE request_id = $1', [
      request.key.text,
    ]);
    const recorded = record?.state === 'completed' ? [record.response?.toString()] : [];
    const books = { order, outcomes, effects: effects.map(({ answer }) => answer) };
    expect(books).toEqual({ order, outcomes, effects: recorded });
    const told = outcomes.filter((outcome) => outcome.startsWith(answerBy('')));
    expect({ order, outcomes, told: [...new Set(told)] }).toEqual({
      ...{ order, outcomes, told: told.length === 0 ? [] : recorded },
    });
  };

  const explore = async (
    lease: 'runs' | 'is over' | 'none',
    programs: (owned: Owned) => readonly Program[],
    agree: Agree = () => undefined,
  ): Promise<number> => {
    let current: Owned = { request: claimRequest(), token: '' };
    return exploreSchedules({
      ...{ pool: opened.database.pool, connections },
      start: async () => {
        current = lease === 'none' ? { request: claimRequest(), token: '' } : await owned(lease);
        return programs(current);
      },
      check: async (schedule) => {
        await checkBooks(current.request, schedule);
        agree(schedule, current);
      },
    });
  };

  /** Somebody has completed, since nobody was left with the claim. */
  const oneCompletes: Agree = ({ order, outcomes }) => {
    const completed = outcomes.some((outcome) => outcome.startsWith(answerBy('')));
    expect({ order, outcomes, completed }).toEqual({ order, outcomes, completed: true });
  };

  /** What settling found out is what the owner's commit did. */
  const settledRightly: Agree = ({ order, outcomes: [owner, settled] }, { token }) => {
    const committed = owner === answerBy(token);
    expect({ order, owner, settled, committed }).toEqual({ order, owner, settled, committed: settled === 'committed' });
  };

  it('two calls with one new key: one runs, the other sees it run or gets its answer (design 4.6, 4.9)', async () => {
    const orders = await explore('none', ({ request }) => [calling(request), calling(request)], oneCompletes);
    expect(orders).toBeGreaterThan(20);
  });

  it('three calls with one new key (design 4.6)', async () => {
    const orders = await explore(
      'none',
      ({ request }) => [calling(request, 'coarse'), calling(request, 'coarse'), calling(request, 'coarse')],
      oneCompletes,
    );
    expect(orders).toBeGreaterThan(100);
  });

  it.each(['BEGIN', 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'BEGIN ISOLATION LEVEL SERIALIZABLE'])(
    'an owner whose lease is over completes (%s) while another call takes over and completes (design 4.6, 4.8)',
    async (begin) => {
      const orders = await explore(
        'is over',
        ({ request, token }) => [completing(request, token, begin), takingOver(request, token, 'coarse')],
        oneCompletes,
      );
      expect(orders).toBeGreaterThan(20);
    },
  );

  it('an owner completes while two calls take over what both have seen (design 4.6)', async () => {
    const orders = await explore(
      'is over',
      ({ request, token }) => [
        completing(request, token, 'BEGIN', 'coarse'),
        takingOver(request, token, 'coarse'),
        takingOver(request, token, 'coarse'),
      ],
      oneCompletes,
    );
    expect(orders).toBeGreaterThan(100);
  });

  it('a commit is settled while it is on its way (design 4.8)', async () => {
    const orders = await explore(
      'runs',
      ({ request, token }) => [completing(request, token), settling(request, token)],
      settledRightly,
    );
    expect(orders).toBeGreaterThan(4);
  });

  it('a commit is settled while it is on its way and another call takes over (design 4.8)', async () => {
    const orders = await explore(
      'is over',
      ({ request, token }) => [
        completing(request, token, 'BEGIN', 'coarse'),
        settling(request, token),
        takingOver(request, token, 'coarse'),
      ],
      settledRightly,
    );
    expect(orders).toBeGreaterThan(50);
  });

  it('an owner gives its key back while another call takes it over and a third one claims it (design 4.8)', async () => {
    const orders = await explore(
      'is over',
      ({ request, token }) => [
        doing(statements.release(request, token)),
        takingOver(request, token, 'coarse'),
        calling(request, 'coarse'),
      ],
      oneCompletes,
    );
    expect(orders).toBeGreaterThan(20);
  });

  it('a lease is ended, token and all, while its owner completes and another call waits for it (design 4.7)', async () => {
    const orders = await explore('runs', ({ request, token }) => [
      completing(request, token, 'BEGIN', 'coarse'),
      doing(statements.endLease(request, token)),
      calling(request, 'coarse'),
    ]);
    expect(orders).toBeGreaterThan(20);
  });

  it('a lease is renewed late while another call takes it over and its owner completes (design 4.7)', async () => {
    const orders = await explore(
      'is over',
      ({ request, token }) => [
        completing(request, token, 'BEGIN', 'coarse'),
        doing(statements.renew(request, token)),
        takingOver(request, token, 'coarse'),
      ],
      oneCompletes,
    );
    expect(orders).toBeGreaterThan(20);
  });
});
