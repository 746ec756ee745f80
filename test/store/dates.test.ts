import { createDays } from '../../src/idempotency/index';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

describe('the date inside a key', () => {
  let opened: TestStore;
  let databaseNowMs: number;

  beforeAll(async () => {
    opened = await openTestStore();
    await createDays(opened.connections.store);
  });

  beforeEach(async () => {
    const [row] = await opened.database.rows<{ ms: number }>('SELECT extract(epoch FROM now())::float8 * 1000 AS ms');
    databaseNowMs = Math.round(row?.ms ?? 0);
  });

  afterEach(async () => {
    jest.useRealTimers();
    await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = '1970-01-01'`);
  });

  afterAll(() => opened.close());

  const datedRequest = (offsetMs: number, maxKeyAgeMs = DAY_MS): ClaimRequest =>
    claimRequest({ requestId: datedKey(databaseNowMs + offsetMs), policy: policyOf('CreatePayment', { maxKeyAgeMs }) });

  const dropThrough = (atMs: number): Promise<unknown> =>
    opened.database.rows('UPDATE idempotency_retention SET dropped_through = $1', [dayOf(atMs)]);

  it('is too old for a first use after the max key age, and nothing is kept of it', async () => {
    const request = datedRequest(-HOUR_MS - MINUTE_MS, HOUR_MS);

    expect(await opened.store.claim(request)).toEqual({ kind: 'expired' });
    expect(await opened.record(request)).toBeUndefined();
    expect(await opened.store.claim(datedRequest(-HOUR_MS + MINUTE_MS, HOUR_MS))).toMatchObject({ kind: 'granted' });
    expect(await opened.store.claim(datedRequest(-400 * DAY_MS))).toEqual({ kind: 'expired' });
  });

  it('does not matter where there is a record: an old one replays, and a running one runs', async () => {
    const young = datedRequest(-MINUTE_MS);
    const old: ClaimRequest = { ...young, policy: { ...young.policy, maxKeyAgeMs: 1 } };
    const claimed = await claim(opened.store, young);
    expect(await opened.store.claim(old)).toMatchObject({ kind: 'in_progress' });

    await complete(opened.store, claimed, answerOf('done'));

    expect(await opened.store.claim(old)).toMatchObject({ kind: 'completed', answer: answerOf('done') });
  });

  it('may be at most 5 minutes ahead of the database', async () => {
    const request = datedRequest(5 * MINUTE_MS + 20_000);

    expect(await opened.store.claim(request)).toEqual({ kind: 'from_future' });
    expect(await opened.record(request)).toBeUndefined();
    expect(await opened.store.claim(datedRequest(5 * MINUTE_MS - 20_000))).toMatchObject({ kind: 'granted' });
    expect(await opened.store.claim(datedRequest(400 * DAY_MS))).toEqual({ kind: 'from_future' });
  });

  it.each([-3 * DAY_MS, 3 * DAY_MS])('is judged by the database clock, with the process %i ms off', async (offMs) => {
    setClock(databaseNowMs + offMs);

    expect(await opened.store.claim(datedRequest(0))).toMatchObject({ kind: 'granted', claim: { attempt: 1 } });
    expect(await opened.store.claim(datedRequest(offMs))).toEqual({ kind: offMs < 0 ? 'expired' : 'from_future' });
  });

  it('is refused when its day was dropped, whatever its age, and other keys are not', async () => {
    await dropThrough(databaseNowMs);

    expect(await opened.store.claim(datedRequest(0))).toEqual({ kind: 'expired' });
    expect(await opened.store.claim(claimRequest())).toMatchObject({ kind: 'granted' });

    await dropThrough(databaseNowMs - DAY_MS);
    expect(await opened.store.claim(datedRequest(0))).toMatchObject({ kind: 'granted' });
  });

  it('leaves the key of a record that was released to its age', async () => {
    const young = datedRequest(-MINUTE_MS);
    await opened.store.releaseIfHeld(await claim(opened.store, young));

    const old: ClaimRequest = { ...young, policy: { ...young.policy, maxKeyAgeMs: 1 } };
    expect(await opened.store.claim(old)).toEqual({ kind: 'expired' });
    expect(await opened.store.claim(young)).toMatchObject({ kind: 'granted' });
  });

  it('whose day is missing makes the call unavailable, and the store goes on', async () => {
    const request = datedRequest(-30 * DAY_MS, 60 * DAY_MS);

    const outcome = await opened.store.claim(request);

    expect(outcome.kind).toBe('unavailable');
    expect(await opened.store.claim(claimRequest())).toMatchObject({ kind: 'granted' });
  });

  it('names the day of the record, so the retry after midnight finds it', async () => {
    const midnightMs = Math.floor(databaseNowMs / DAY_MS) * DAY_MS;
    const before = claimRequest({ requestId: datedKey(midnightMs - 1) });
    const after = claimRequest({ requestId: datedKey(midnightMs) });
    expect([before.key.bucket, after.key.bucket]).toEqual([dayOf(midnightMs - 1), dayOf(midnightMs)]);

    setClock(midnightMs - 1);
    await complete(opened.store, await claim(opened.store, before), answerOf('before midnight'));
    setClock(midnightMs + HOUR_MS);
    await complete(opened.store, await claim(opened.store, after), answerOf('after midnight'));

    expect(await opened.store.claim(before)).toMatchObject({ answer: answerOf('before midnight') });
    expect(await opened.store.claim(after)).toMatchObject({ answer: answerOf('after midnight') });
    const tables = await opened.database.rows<{ table: string }>(
      'SELECT tableoid::regclass::text AS table FROM idempotency_record WHERE request_id = ANY ($1) ORDER BY 1',
      [[before.key.text, after.key.text]],
    );
    expect(tables.map(({ table }) => table)).toEqual(
      [midnightMs - 1, midnightMs].map((atMs) => `idempotency_record_d${dayOf(atMs).replaceAll('-', '')}`),
    );
  });
});

function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** Sets this process's clock, and that alone: everything that waits goes on as it was. */
function setClock(now: number): void {
  jest.useFakeTimers({
    now,
    doNotFake: [
      ...(['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const),
      ...(['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] as const),
    ],
  });
}
