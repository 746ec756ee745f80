import type { IntentOptions } from '../../src/idempotency/index';
import { connect } from '../../src/database/connect';
import { PURGE_FINISHED, SELECT_UNRESOLVED } from '../../src/idempotency/intents/intent-sql';
import { type CallersDatabase, createCallersDatabase } from '../support/intents';

let callers: CallersDatabase;

beforeAll(async () => {
  callers = await createCallersDatabase();
});

afterAll(() => callers.close());

describe('finish', () => {
  it('leaves the key to a second delivery of the same job, and can be repeated', async () => {
    const draft = callers.newDraft();
    const made = await callers.intents().requestIdFor('pay', draft);
    expect(await callers.intents().finish(made)).toBe(true);
    const at = () => callers.database.rows('SELECT finished_at FROM idempotency_intent WHERE draft_id = $1', [draft]);
    const [first] = await at();
    expect(first).toEqual({ finished_at: expect.any(Date) as Date });
    expect(await callers.intents().finish(made)).toBe(true);
    expect(await at()).toEqual([first]);
    expect(await callers.intents().requestIdFor('pay', draft)).toEqual(made);
  });

  it.each(['finish', 'forget'] as const)(
    '%s commits and rolls back with the transaction it is given',
    async (change) => {
      const draft = callers.newDraft();
      const made = await callers.intents().requestIdFor('pay', draft);
      const undone = callers.client.$transaction(async (tx) => {
        expect(await callers.intents()[change](made, tx)).toBe(true);
        throw new Error('rolled back');
      });
      await expect(undone).rejects.toThrow('rolled back');
      const isChanged = `idempotency_intent WHERE draft_id = '${draft}' AND finished_at IS NULL`;
      expect(await callers.database.count(isChanged)).toBe(1);
      await callers.client.$transaction((tx) => callers.intents()[change](made, tx));
      expect(await callers.database.count(isChanged)).toBe(0);
    },
  );
});

describe('forget', () => {
  it('lets the intent be made anew', async () => {
    const draft = callers.newDraft();
    const made = await callers.intents().requestIdFor('pay', draft);
    expect(await callers.intents().forget(made)).toBe(true);
    expect(await callers.intents().forget(made)).toBe(false);
    expect((await callers.intents().requestIdFor('pay', draft)).requestId).not.toBe(made.requestId);
  });

  it.each(['finish', 'forget'] as const)('%s changes no key that was made since', async (change) => {
    const draft = callers.newDraft();
    const old = await callers.intents().requestIdFor('pay', draft);
    await callers.intents().forget(old);
    const made = await callers.intents().requestIdFor('pay', draft);
    expect(await callers.intents()[change](old)).toBe(false);
    expect(await callers.database.count(`idempotency_intent WHERE draft_id = '${draft}' AND finished_at IS NULL`)).toBe(
      1,
    );
    expect(await callers.intents().requestIdFor('pay', draft)).toEqual(made);
  });

  it.each(['finish', 'forget'] as const)("%s changes nobody else's", async (change) => {
    const draft = callers.newDraft();
    const made = await callers.intents().requestIdFor('pay', draft);
    expect(await callers.intents({ producer: 'billing' })[change](made)).toBe(false);
    expect(await callers.intents()[change]({ ...made, intent: 'refund' })).toBe(false);
    expect(await callers.intents()[change]({ ...made, draftId: callers.newDraft() })).toBe(false);
    expect(await callers.database.count(`idempotency_intent WHERE draft_id = '${draft}' AND finished_at IS NULL`)).toBe(
      1,
    );
  });

  it.each([undefined, '', 'x', '00000000-0000-0000-0000-000000000000', 7])(
    'takes no key like %j',
    async (requestId) => {
      const key = { intent: 'pay', draftId: callers.newDraft(), requestId: requestId as string };
      await expect(callers.intents().forget(key)).rejects.toThrow(
        new TypeError('requestId: expected the key of the intent'),
      );
    },
  );
});

describe('unresolved', () => {
  it('lists what is expired and not finished, of this producer, the oldest first', async () => {
    const producer = 'unresolved';
    const intents = callers.intents({ producer });
    const made = [];
    for (const name of ['old', 'older', 'finished', 'usable']) made.push(await intents.requestIdFor('pay', name));
    await callers.intents().requestIdFor('pay', 'of another');
    for (const name of ['old', 'finished', 'older', 'of another']) await callers.expire(name);
    await callers.database.rows(
      `UPDATE idempotency_intent SET created_at = created_at - interval '1 day', expires_at = expires_at - interval '1 day'
       WHERE draft_id = 'older'`,
    );
    await intents.finish({ intent: 'pay', draftId: 'finished', requestId: made[2]?.requestId ?? '' });
    const listed = await intents.unresolved();
    expect(listed.map(({ draftId }) => draftId)).toEqual(['older', 'old']);
    expect(listed[1]).toEqual({
      ...{ intent: 'pay', draftId: 'old', requestId: made[0]?.requestId },
      expiresAt: expect.any(Date) as Date,
    });
    expect((await intents.unresolved(1)).map(({ draftId }) => draftId)).toEqual(['older']);
  });
});

describe('purgeFinished', () => {
  const producer = 'purging';
  const insert = async (count: number, name: string, columns: { finished: string; expires?: string; by?: string }) =>
    callers.database.rows(
      `INSERT INTO idempotency_intent (created_at, expires_at, finished_at, request_id, producer, intent, draft_id)
       SELECT now() - interval '90 days', now() + $3::interval, now() + $4::interval,
         '01890a5d-ac96-774b-bcce-b302099a8057', $5, 'pay', $2 || n FROM generate_series(1, $1::int) AS n`,
      [count, name, columns.expires ?? '-60 days', columns.finished, columns.by ?? producer],
    );
  const left = async (): Promise<string[]> => {
    const rows = await callers.database.rows<{ draft_id: string }>(
      `SELECT draft_id FROM idempotency_intent WHERE producer IN ('purging', 'other') ORDER BY draft_id`,
    );
    return rows.map(({ draft_id }) => draft_id);
  };

  beforeEach(() => callers.database.rows(`DELETE FROM idempotency_intent WHERE producer IN ('purging', 'other')`));

  it('removes what was finished long ago, batch by batch, and nothing else', async () => {
    await insert(25, 'old-', { finished: '-31 days' });
    await insert(1, 'just-finished-', { finished: '-29 days' });
    await insert(1, 'usable-', { finished: '-31 days', expires: '1 hour' });
    for (const name of ['old-', 'just-finished-']) await insert(1, name, { finished: '-31 days', by: 'other' });
    await callers.database.rows(
      `INSERT INTO idempotency_intent (created_at, expires_at, request_id, producer, intent, draft_id)
       VALUES (now() - interval '9 years', now() - interval '8 years', '01890a5d-ac96-774b-bcce-b302099a8057', $1, 'pay', 'unfinished')`,
      [producer],
    );
    let statements = 0;
    const client: IntentOptions['client'] = {
      $connect: () => callers.client.$connect(),
      $queryRawUnsafe: (query, ...values) => {
        statements += 1;
        return callers.client.$queryRawUnsafe(query, ...values);
      },
    };
    expect(await callers.intents({ client, producer, purgeBatchSize: 10 }).purgeFinished()).toBe(25);
    expect(statements).toBe(3);
    expect(await left()).toEqual(['just-finished-1', 'just-finished-1', 'old-1', 'unfinished', 'usable-1']);
  });

  it('waits for nobody', async () => {
    await insert(3, 'old-', { finished: '-31 days' });
    const url = new URL(callers.database.connectionString);
    url.searchParams.set('options', '-c lock_timeout=500');
    const impatient = connect({ connectionString: url.href });
    const hand = await callers.database.pool.connect();
    try {
      await hand.query('BEGIN');
      await hand.query(`SELECT FROM idempotency_intent WHERE draft_id = 'old-2' FOR UPDATE`);
      expect(await callers.intents({ client: impatient.business, producer }).purgeFinished()).toBe(2);
    } finally {
      await hand.query('ROLLBACK');
      hand.release();
      await impatient.close();
    }
    expect(await callers.intents({ producer }).purgeFinished()).toBe(1);
  });

  it.each([
    ['purgeFinished', PURGE_FINISHED, [producer, 1, 10]],
    ['unresolved', SELECT_UNRESOLVED, [producer, 10]],
  ])('reads a big table by its index in %s', async (_, statement, values) => {
    await insert(20_000, 'young-', { finished: '-1 day' });
    await callers.database.rows('ANALYZE idempotency_intent');
    const plan = await callers.database.rows<{ 'QUERY PLAN': string }>(`EXPLAIN ${statement}`, values);
    const text = plan.map((line) => line['QUERY PLAN']).join('\n');
    expect(text).toContain('idempotency_intent_open_or_old');
    expect(text).not.toContain('Seq Scan');
  });
});
