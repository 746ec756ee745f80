import { randomUUID } from 'node:crypto';
import { derivedKeyOf } from '../../src/idempotency/derived-request-id';
import { findRecords } from '../../src/idempotency/store/operator';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { type OperatedStore, openOperatedStore } from '../support/operated-store';
import { claim, idOf } from '../support/store';

const DAY_MS = 24 * 3_600_000;

let opened: OperatedStore;

beforeAll(async () => (opened = await openOperatedStore()));
afterAll(() => opened.close());
beforeEach(() => opened.clear());

const client = () => opened.connections.store;

describe('the records of a key', () => {
  it.each([randomUUID(), datedKey(Date.now()), 'opaque-key-of-25-letters!'])(
    'are found for %s without scope and method, and those of no other key',
    async (requestId) => {
      const key = keyOf(requestId);
      for (const which of [{}, { scope: 'account-2' }, { policy: policyOf('RefundPayment') }]) {
        await claim(opened.store, { ...claimRequest(which), key });
      }
      await claim(opened.store, claimRequest());
      // Of the same millisecond, so that its id is between theirs.
      if (key.dated !== undefined) await claim(opened.store, claimRequest({ requestId: sameTime(requestId) }));
      const records = await opened.found(requestId);
      expect(records.map(({ scope, path }) => [scope, path])).toEqual([
        ['account-1', '/payments.v1.PaymentsService/CreatePayment'],
        ['account-2', '/payments.v1.PaymentsService/CreatePayment'],
        ['account-1', '/payments.v1.PaymentsService/RefundPayment'],
      ]);
      expect(records.every((record) => record.requestId === requestId)).toBe(true);
    },
  );

  it('are found whatever the case of a UUID', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    expect(await opened.found(request.key.text.toUpperCase())).toHaveLength(1);
  });

  it('tell where a request stands, with the names of its steps and the keys of its effects, and no result', async () => {
    const request = await opened.halfFinished(datedKey(Date.now()));
    const record = await opened.one(request);
    expect(record).toMatchObject({
      ...{ state: 'claimed', attempt: 1, recoveryPoint: 'charge#begun', isDated: true, isRequestKept: false },
      ...{ code: undefined, completedAt: undefined, keptAt: undefined, resource: undefined },
    });
    const { scope, policy, key } = request;
    expect(record.steps).toEqual([
      { kind: 'phase', name: 'draft', isDone: true, derivedKey: undefined },
      {
        ...{ kind: 'effect', name: 'charge', isDone: false },
        derivedKey: derivedKeyOf({ scope, path: policy.path, key }, 'charge'),
      },
    ]);
    expect(record.leaseLeftMs).toBeLessThanOrEqual(0);
    expect(record.expiresAt?.getTime()).toBe(record.since.getTime() + policy.retentionMs);
    expect(JSON.stringify(record)).not.toContain('secret');
  });

  it('tell of an answer its code and what it is about', async () => {
    const record = await opened.one(await opened.completed());
    expect(record).toMatchObject({
      state: 'completed',
      code: 0,
      resource: 'payments/1',
      isAnswerKept: true,
      steps: [],
    });
    expect(record.completedAt).toBeInstanceOf(Date);
    expect(JSON.stringify(record)).not.toContain('secret');
  });

  it('are told of once where the database no longer knows their method, and where their steps are of another form', async () => {
    const request = await opened.halfFinished();
    await opened.change(request, `method = 99, results = '[["loop","a",null]]'`);
    expect(await opened.one(request)).toMatchObject({ path: undefined, expiresAt: undefined, steps: undefined });
    await opened.change(request, `results = 'not JSON'`);
    expect(await opened.one(request)).toMatchObject({ steps: undefined });
  });

  it('are found where their day was dropped and they were kept', async () => {
    const request = await opened.halfFinished(datedKey(Date.now()));
    await opened.database.rows(
      'INSERT INTO idempotency_record_kept SELECT now(), record.* FROM idempotency_record AS record',
    );
    const neighbour = { ...request, key: keyOf(sameTime(request.key.text)) };
    await opened.database.rows(
      `INSERT INTO idempotency_record_kept (kept_at, created_at, lease_until, bucket, attempt, method, id, owner_token,
         state, fingerprint, scope, request_id, instance)
       SELECT now(), now(), now(), bucket, 1, method, $1, owner_token, 'parked', fingerprint, scope, $2, ''
       FROM idempotency_record`,
      [idOf(neighbour), neighbour.key.text],
    );
    await opened.database.rows('DELETE FROM idempotency_record');
    const record = await opened.one(request);
    expect(record.keptAt).toBeInstanceOf(Date);
    expect(record).toMatchObject({ state: 'claimed', recoveryPoint: 'charge#begun' });
  });

  it('that are none say whether the key may be used, is too old, or is of a day that was dropped', async () => {
    const absent = async (requestId: string) => findRecords(client(), requestId);
    expect(await absent(randomUUID())).toEqual({ kind: 'none', absent: 'unused' });
    expect(await absent(datedKey(Date.now()))).toEqual({ kind: 'none', absent: 'unused' });
    const old = datedKey(Date.now() - 3 * DAY_MS);
    expect(await absent(old)).toEqual({ kind: 'none', absent: 'too_old' });
    await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = now() - interval '2 days'`);
    expect(await absent(old)).toEqual({ kind: 'none', absent: 'forgotten' });
    await opened.database.rows(`UPDATE idempotency_retention SET dropped_through = '1970-01-01'`);
    expect(await absent(randomUUID())).toEqual({ kind: 'none', absent: 'unused' });
    for (const text of ['', 'a,b', 'short']) expect(await absent(text)).toMatchObject({ kind: 'malformed' });
  });
});

/** Another key with the time of a dated one. */
function sameTime(requestId: string): string {
  return requestId.slice(0, 14) + datedKey(0).slice(14);
}

function keyOf(requestId: string): ClaimRequest['key'] {
  const { key } = claimRequest({ requestId: /^[0-9a-f-]{36}$/.test(requestId) ? requestId : randomUUID() });
  return key.text === requestId ? key : { text: requestId, dated: undefined, bucket: '1970-01-01' };
}
