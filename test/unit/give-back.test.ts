import type { SqlClient } from '../../src/idempotency/index';
import { createGiveBack } from '../../src/idempotency/store/give-back';
import { RELEASE_IF_HELD } from '../../src/idempotency/store/sql/lease';
import { connectionTerminated } from '../support/database-errors';
import { deferred } from '../support/deferred';

const placeOf = (id: number) => ({ bucket: '2026-11-30', id: String(id), ownerToken: 'token' });

describe('what gives claims back later', () => {
  /** Answers each release by its id, and says which were asked for. */
  const records = (answer: (id: string, times: number) => unknown[]) => {
    const asked: string[] = [];
    const client: SqlClient = {
      $queryRawUnsafe: async <Rows>(query: string, ...values: unknown[]): Promise<Rows> => {
        if (query !== RELEASE_IF_HELD) return [] as Rows;
        const id = String(values[1]);
        asked.push(id);
        return answer(id, asked.length) as Rows;
      },
    };
    return { client, asked };
  };

  it('leaves the oldest to the end of their leases where too many wait', async () => {
    const last = deferred();
    const { client, asked } = records((id) => {
      if (id === '1000') last.resolve();
      return [{}];
    });
    const giveBack = createGiveBack(client);
    for (let id = 0; id <= 1_000; id += 1) giveBack(placeOf(id));
    await last.promise;
    expect(asked).toHaveLength(1_000);
    expect(asked).not.toContain('0');
  });

  it('looks again for one that is not there: its statement may be on its way', async () => {
    const again = deferred();
    const { client } = records((_, times) => {
      if (times === 2) again.resolve();
      return [];
    });
    createGiveBack(client)(placeOf(1));
    await again.promise;
  });

  it('asks for one alone while the database is away', async () => {
    const back = deferred();
    const { client, asked } = records((id, times) => {
      if (times < 3) throw connectionTerminated();
      if (id === '2') back.resolve();
      return [{}];
    });
    const giveBack = createGiveBack(client);
    for (let id = 0; id <= 2; id += 1) giveBack(placeOf(id));
    await back.promise;
    expect(asked).toEqual(['0', '0', '0', '1', '2']);
  });

  it('gives up where the pool was closed, and takes what comes after that', async () => {
    const fresh = deferred();
    const { client, asked } = records((id, times) => {
      if (times === 1) throw new Error('Cannot use a pool after calling end on the pool');
      if (id === '3') fresh.resolve();
      return [{}];
    });
    const giveBack = createGiveBack(client);
    for (let id = 0; id <= 2; id += 1) giveBack(placeOf(id));
    while (asked.length === 0) await new Promise(setImmediate);
    giveBack(placeOf(3));
    await fresh.promise;
    expect(asked).toEqual(['0', '3']);
  });
});
