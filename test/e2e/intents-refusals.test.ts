import { connect } from '../../src/database/connect';
import { createIntents, type IntentOptions } from '../../src/idempotency/index';
import { type CallersDatabase, createCallersDatabase, dateOfKey } from '../support/intents';
import { createTestDatabase } from '../support/postgres';

const HOUR_MS = 3_600_000;

let callers: CallersDatabase;

beforeAll(async () => {
  callers = await createCallersDatabase();
});

afterAll(() => callers.close());

describe('what is refused', () => {
  const draftIds: readonly unknown[] = ['', 'a'.repeat(256), 'a\u0000', 'a\ud800', undefined, 7, null];
  it.each(draftIds)('the draft %j', async (draftId) => {
    const expected = /^draftId: expected a text of 1 to 255 characters/;
    await expect(callers.intents().requestIdFor('pay', draftId as string)).rejects.toThrow(expected);
    const key = { intent: 'pay', draftId: draftId as string, requestId: '01890a5d-ac96-774b-bcce-b302099a8057' };
    await expect(callers.intents().finish(key)).rejects.toThrow(expected);
  });

  it.each(['', 'to pay', 'öde', undefined, 7])('the intent %j', async (intent) => {
    await expect(callers.intents().requestIdFor(intent as string, callers.newDraft())).rejects.toThrow(
      /^intent: expected 1 to 128/,
    );
  });

  it.each([0, -1, 1.5, NaN, 100_001, '7'])('a list of %j', async (limit) => {
    const expected = new TypeError('limit: expected a whole number from 1 to 100000');
    await expect(callers.intents().unresolved(limit as number)).rejects.toThrow(expected);
  });

  it('but not a draft of 255 characters of any kind', async () => {
    const draft = `${'ö😀'.repeat(85)}`;
    expect(draft.length).toBe(255);
    expect(await callers.intents().requestIdFor('pay', draft)).toMatchObject({ kind: 'usable' });
    expect(await callers.database.count(`idempotency_intent WHERE draft_id = '${draft}'`)).toBe(1);
  });

  it.each<[string, unknown]>([
    ['producer: expected', { producer: '' }],
    ['producer: expected', { producer: 'a b' }],
    ['client: expected', { client: {} }],
    ['client: expected', { client: undefined }],
    ['expiresAfterMs: expected', { expiresAfterMs: 24 * HOUR_MS }],
    ['expiresAfterMs: expected', { expiresAfterMs: 0 }],
    ['expiresAfterMs: expected', { expiresAfterMs: NaN }],
    ['less than 3600000', { expiresAfterMs: HOUR_MS, policies: [{ maxKeyAgeMs: HOUR_MS, retentionMs: 2 * HOUR_MS }] }],
    ['less than 3600000', { expiresAfterMs: HOUR_MS, policies: [{ maxKeyAgeMs: 2 * HOUR_MS, retentionMs: HOUR_MS }] }],
    ['policies: expected', { policies: [] }],
    ['policies: expected', { policies: [undefined] }],
    ['keepFinishedMs: expected', { keepFinishedMs: HOUR_MS }],
    ['purgeBatchSize: expected', { purgeBatchSize: 0 }],
    ['client: expected a Prisma client, and not that of an open transaction; producer: ', { client: 1, producer: 1 }],
  ])('the option: %s, from %j', (message, options) => {
    const create = (): unknown => callers.intents(options as Partial<IntentOptions>);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
  });

  it('but not the default expiry, which is half of what the methods allow', async () => {
    const policies = [
      { maxKeyAgeMs: 4 * HOUR_MS, retentionMs: 72 * HOUR_MS },
      { maxKeyAgeMs: 24 * HOUR_MS, retentionMs: 2 * HOUR_MS },
    ];
    const outcome = await callers.intents({ policies }).requestIdFor('pay', callers.newDraft());
    expect(outcome.expiresAt.getTime() - dateOfKey(outcome.requestId)).toBe(HOUR_MS);
  });
});

describe('the table', () => {
  it('is asked for where it is missing', async () => {
    const empty = await createTestDatabase({ empty: true });
    const connections = connect({ connectionString: empty.connectionString });
    try {
      const intents = createIntents({ client: connections.business, producer: 'shop' });
      await expect(intents.requestIdFor('pay', 'draft-1')).rejects.toThrow(
        'intents: the table idempotency_intent is missing; INTENT_TABLE_SQL makes it',
      );
    } finally {
      await connections.close();
      await empty.drop();
    }
  });

  const row = {
    created_at: '2026-11-30T12:00:00Z',
    expires_at: '2026-11-30T13:00:00Z',
    request_id: '01890a5d-ac96-774b-bcce-b302099a8057',
    ...{ producer: 'shop', intent: 'pay', draft_id: 'by hand' },
  };
  it.each([
    ['producer_named', { producer: 'a b' }],
    ['intent_named', { intent: '' }],
    ['draft_id_length', { draft_id: '' }],
    ['draft_id_length', { draft_id: 'a'.repeat(256) }],
    ['request_id_dated', { request_id: '3f2b8c1e-5a6d-4e7f-8a9b-0c1d2e3f4a5b' }],
    ['expires_later', { expires_at: row.created_at }],
  ])('holds %s', async (constraint, change) => {
    const changed = { ...row, ...change };
    const insert = callers.database.rows(
      `INSERT INTO idempotency_intent (${Object.keys(changed).join(', ')}) VALUES ($1, $2, $3, $4, $5, $6)`,
      Object.values(changed),
    );
    await expect(insert).rejects.toThrow(`"idempotency_intent_${constraint}"`);
  });
});
