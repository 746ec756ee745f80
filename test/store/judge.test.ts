import { judge, type RecordRow } from '../../src/idempotency/store/judge';
import { claimRequest } from '../support/claim-requests';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

describe('what is said about a record', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  const foreign: readonly [string, string][] = [
    ['scope', `scope = 'account-2'`],
    ['method', 'method = method + 1'],
    ['key', `request_id = 'another-key-of-somebody'`],
  ];

  it.each(foreign)('is nothing at all, when it belongs to another %s under the same id', async (_, change) => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    await complete(opened.store, claimed, answerOf('of somebody else'));
    await opened.database.rows(`UPDATE idempotency_record SET ${change} WHERE request_id = $1`, [request.key.text]);

    const outcome = await opened.store.claim(request);

    expect(outcome.kind).toBe('unavailable');
    const error = outcome.kind === 'unavailable' ? String(outcome.error) : '';
    expect(error).toContain('belongs to another scope, method or key');
    await expect(opened.store.lookUp(request)).rejects.toThrow('belongs to another scope, method or key');
  });

  const states: readonly ('expired' | 'parked')[] = ['expired', 'parked'];

  it.each(states)('is %s where an operator has made it so, and it is not run again', async (state) => {
    const request = claimRequest();
    const { ownerToken } = await claim(opened.store, request);
    await opened.database.rows(
      `UPDATE idempotency_record SET state = $2, lease_until = now(), resource = 'payments/7' WHERE request_id = $1`,
      [request.key.text, state],
    );

    // With the resource, for the log; parked and removed it is told apart from a key without a record.
    const found = { expired: { tombstone: { resource: 'payments/7' } }, parked: { resource: 'payments/7' } }[state];
    expect(await opened.store.claim(request)).toEqual({ kind: state, ...found });
    expect(await opened.store.lookUp(request)).toEqual({ kind: state, ...found });
    const other = claimRequest({ requestId: request.key.text, orderId: 'order-2' });
    expect(await opened.store.claim(other)).toEqual({ kind: 'mismatch' });
    expect(await opened.record(request)).toMatchObject({ state, attempt: 1, owner_token: ownerToken });
  });

  it('is the resource too, once the running attempt has named it', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await opened.database.rows(`UPDATE idempotency_record SET resource = 'payments/7' WHERE request_id = $1`, [
      request.key.text,
    ]);

    expect(await opened.store.claim(request)).toMatchObject({ kind: 'in_progress', resource: 'payments/7' });
  });
});

describe('a record that breaks what the table promises', () => {
  const request = claimRequest();
  const row: RecordRow = {
    ...{ state: 'completed', method: 1, scope: request.scope, requestId: request.key.text },
    ...{ fingerprint: request.fingerprint, ownerToken: 'token', attempt: 1, createdAtMs: 0, leaseLeftMs: 0 },
    ...{
      statusCode: 0,
      statusMessage: null,
      response: null,
      trailers: null,
      resource: null,
      answerKept: true,
      ageMs: 0,
      recoveryPoint: null,
      results: null,
      tooOld: false,
      fromFuture: false,
    },
  };

  it('is an error and never an answer', () => {
    expect(judge(row, request, 1)).toMatchObject({ kind: 'completed' });
    expect(() => judge({ ...row, statusCode: null }, request, 1)).toThrow('without a status');
    expect(() => judge({ ...row, state: 'failed' }, request, 1)).toThrow('unknown state of a record: failed');
  });
});
