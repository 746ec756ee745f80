import { findParked } from '../../src/idempotency/store/operator';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { type OperatedStore, openOperatedStore } from '../support/operated-store';

let opened: OperatedStore;

beforeAll(async () => (opened = await openOperatedStore()));
afterAll(() => opened.close());
beforeEach(() => opened.clear());

const find = async (pathEnd?: string, limit = 10): Promise<readonly string[]> => {
  const records = await findParked(opened.connections.business, { pathEnd, limit });
  return records.map(({ requestId }) => requestId);
};

/** Lets all records outlive their day that are not of one of these. */
const keepBut = async (...requests: readonly ClaimRequest[]): Promise<void> => {
  const others = requests.map(({ key }) => key.text);
  const where = 'WHERE request_id <> ALL ($1)';
  await opened.database.rows(
    `INSERT INTO idempotency_record_kept SELECT now(), record.* FROM idempotency_record AS record ${where}`,
    [others],
  );
  await opened.database.rows(`DELETE FROM idempotency_record ${where}`, [others]);
};

/** A parked request that was claimed first so long ago. */
const parkedBefore = async (age: string): Promise<ClaimRequest> => {
  const request = await opened.parked();
  await opened.change(request, `created_at = now() - interval '${age}'`);
  return request;
};

/** Lets a request be of another method. */
const changeMethod = async (request: ClaimRequest): Promise<void> => {
  await opened.database.rows(
    `INSERT INTO idempotency_method (path, retention_ms, max_key_age_ms) VALUES ('/other.v1.Other/CreateOther', 1, 1)
     ON CONFLICT DO NOTHING`,
  );
  await opened.change(request, `method = (SELECT id FROM idempotency_method WHERE path LIKE '/other%')`);
};

describe('what is parked', () => {
  it('is found in the records and among those that outlived their day, the oldest first, and nothing else', async () => {
    expect(await find()).toEqual([]);
    const [second, fourth] = [await parkedBefore('3 days'), await parkedBefore('1 day')];
    const [third, first] = [await parkedBefore('2 days'), await parkedBefore('4 days')];
    const half = await opened.halfFinished();
    await opened.halfFinished();
    await opened.completed();
    await keepBut(second, fourth, half, await opened.completed());
    const expected = [first, second, third, fourth].map(({ key }) => key.text);
    expect(await find()).toEqual(expected);
    expect(await find(undefined, 3)).toEqual(expected.slice(0, 3));
  });

  it('is found by its method, whole or in part, wherever it is', async () => {
    const [other, otherKept] = [await parkedBefore('4 days'), await parkedBefore('3 days')];
    for (const request of [other, otherKept]) await changeMethod(request);
    const [mine, mineKept] = [await parkedBefore('2 days'), await parkedBefore('1 day')];
    await keepBut(other, mine);
    const [others, payments] = [
      [other, otherKept],
      [mine, mineKept],
    ].map((all) => all.map(({ key }) => key.text));
    expect(await find('/CreateOther')).toEqual(others);
    expect(await find('/other.v1.Other/CreateOther')).toEqual(others);
    expect(await find('/CreatePayment')).toEqual(payments);
    expect(await find('/Other')).toEqual([]);
    expect(await find()).toHaveLength(4);
  });

  it('is found where the database no longer knows its method, and tells all that is told of a record', async () => {
    const request = await opened.parked();
    const [record] = await findParked(opened.connections.business, { pathEnd: undefined, limit: 1 });
    const seen = await opened.one(request);
    expect(record).toEqual({ ...seen, ageMs: expect.any(Number) as number, leaseLeftMs: expect.any(Number) as number });
    await opened.change(request, 'method = 99');
    expect(await find()).toEqual([request.key.text]);
  });
});
