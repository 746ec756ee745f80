import type { SqlClient } from '../../src/idempotency/index';
import { INSERT_CLAIM, TAKE_OVER_IF_EXPIRED } from '../../src/idempotency/store/sql/claim';
import { LOOK_UP } from '../../src/idempotency/store/sql/look-up';
import { END_LEASES_IF_HELD, RELEASE_IF_HELD } from '../../src/idempotency/store/sql/lease';
import { claimRequest } from '../support/claim-requests';
import { connectionTerminated, postgresCause, statementError } from '../support/database-errors';
import { deferred } from '../support/deferred';
import { answerOf, claim, LIMITS, openTestStore, TERMS, type TestStore } from '../support/store';
import { until } from '../support/until';

jest.setTimeout(30_000);

/** What becomes of the n-th statement of a kind. */
type Fate = 'arrives' | 'arrives late' | 'answer lost' | 'locked out' | 'lost';

describe('a claim whose statement arrives after its call has gone on (design 4.8, case B3)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  /** A connection on which statements have these fates, by their order; those beyond arrive. */
  const fated = (fates: ReadonlyMap<string, readonly Fate[]>) => {
    const late: (() => Promise<unknown>)[] = [];
    const seen = new Map<string, number>();
    const records: SqlClient = {
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        const run = () => opened.connections.store.$queryRawUnsafe<Rows>(query, ...values);
        const time = seen.get(query) ?? 0;
        seen.set(query, time + 1);
        switch (fates.get(query)?.[time] ?? 'arrives') {
          case 'arrives':
            return run();
          case 'arrives late':
            late.push(run);
            throw connectionTerminated();
          case 'answer lost':
            await run();
            throw connectionTerminated();
          case 'locked out':
            throw statementError(postgresCause('55P03'));
          case 'lost':
            throw connectionTerminated();
        }
      },
    };
    const arrive = async (): Promise<void> => {
      for (const run of late) await run();
    };
    return { records, arrive, times: (query: string) => seen.get(query) ?? 0 };
  };

  const isFree = (request: ReturnType<typeof claimRequest>) =>
    until('the key is free again', async () => (await opened.record(request)) === undefined);

  it('revives nobody: what was settled as never committed does not commit', async () => {
    const request = claimRequest();
    const { records, arrive } = fated(new Map([[INSERT_CLAIM, ['arrives late']]]));
    const store = await opened.open({ records });
    const held = await claim(store, request);
    const gate = deferred();
    const stuck = store
      .transaction(async (tx) => {
        await gate.promise;
        await store.completeIfHeld(tx, held, answerOf('late'), TERMS);
      }, LIMITS)
      .then(
        () => 'committed',
        (error: unknown) => (store.readFault(error).fenced ? 'fenced' : error),
      );
    const settled = await store.settle(request, held, 5_000);
    if (settled.kind !== 'never_committed') throw new Error(settled.kind);
    await store.releaseIfHeld(settled.claim);
    // Another attempt is given its key back too: its caller knows that nothing happened.
    await opened.store.releaseIfHeld(await claim(opened.store, request));
    await arrive();
    gate.resolve();
    expect(await stuck).toBe('fenced');
  });

  it('is given back where a repeat was granted and given back before', async () => {
    const request = claimRequest();
    const { records, arrive } = fated(new Map([[INSERT_CLAIM, ['arrives late']]]));
    const store = await opened.open({ records });
    expect(await store.releaseIfHeld(await claim(store, request))).toBe(true);
    await arrive();
    expect(await opened.record(request)).toMatchObject({ state: 'claimed' });
    await isFree(request);
  });

  it('is given back where a repeat found the row in hand', async () => {
    const request = claimRequest();
    const { records, arrive } = fated(new Map([[INSERT_CLAIM, ['arrives late', 'locked out']]]));
    const store = await opened.open({ records });
    expect(await store.claim(request)).toMatchObject({ kind: 'in_progress' });
    await arrive();
    await isFree(request);
  });

  it('is given back where it was a takeover, and the look at its record found it in hand', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await opened.endLease(request);
    const fates = new Map<string, readonly Fate[]>([
      [TAKE_OVER_IF_EXPIRED, ['answer lost']],
      [LOOK_UP, ['arrives', 'locked out']],
    ]);
    const store = await opened.open({ records: fated(fates).records });
    expect(await store.claim(request)).toMatchObject({ kind: 'in_progress' });
    await isFree(request);
  });

  it('is given back however long the database was away before', async () => {
    const request = claimRequest();
    const away: Fate[] = ['lost', 'lost', 'lost', 'lost', 'lost'];
    const fates = new Map<string, readonly Fate[]>([
      [INSERT_CLAIM, ['answer lost']],
      [LOOK_UP, away],
      [RELEASE_IF_HELD, away],
    ]);
    const { records, times } = fated(fates);
    // All but the first INSERT give nothing, so each round goes on to the look-up.
    const store = await opened.open({ records });
    expect(await store.claim(request)).toMatchObject({ kind: 'unavailable' });
    expect(await opened.record(request)).toMatchObject({ state: 'claimed' });
    await isFree(request);
    expect(times(RELEASE_IF_HELD)).toBe(6);
  });

  it('is kept where it was the one that was granted', async () => {
    const [kept, other] = [claimRequest(), claimRequest()];
    const fates = new Map<string, readonly Fate[]>([
      [INSERT_CLAIM, ['answer lost']],
      [RELEASE_IF_HELD, ['lost']],
    ]);
    const store = await opened.open({ records: fated(fates).records });
    await claim(store, kept);
    // Given back later than the other would be, by the same hands.
    const second = await claim(store, other);
    await expect(store.releaseIfHeld(second)).rejects.toThrow('terminated');
    await isFree(other);
    expect(await opened.record(kept)).toMatchObject({ state: 'claimed' });
  });

  it.each(['endLeasesIfHeld', 'pauseIfHeld'] as const)(
    'has its lease ended later where %s could not do so',
    async (end) => {
      const request = claimRequest();
      const store = await opened.open({ records: fated(new Map([[END_LEASES_IF_HELD, ['lost']]])).records });
      const held = await claim(store, request);
      expect(await store.recordStepIfHeld(held, { recoveryPoint: 'charge#begun', results: Buffer.from('[]') })).toBe(
        true,
      );
      await expect(end === 'pauseIfHeld' ? store.pauseIfHeld(held) : store.endLeasesIfHeld([held])).rejects.toThrow();
      await until('somebody can go on', async () => (await opened.store.claim(request)).kind === 'granted');
    },
  );

  it('is given back later where it could not be at once', async () => {
    const request = claimRequest();
    const store = await opened.open({ records: fated(new Map([[RELEASE_IF_HELD, ['lost']]])).records });
    await expect(store.releaseIfHeld(await claim(store, request))).rejects.toThrow('terminated');
    expect(await opened.record(request)).toMatchObject({ state: 'claimed' });
    await isFree(request);
  });
});
