import { claimRequest, policyOf } from '../support/claim-requests';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

describe('a claim (design 4.6)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  it('is granted once; whoever comes next is told how much lease is left', async () => {
    const { store } = opened;
    const request = claimRequest();

    const first = await store.claim(request);
    const second = await store.claim(request);

    expect(first).toMatchObject({ kind: 'granted', takeover: false, claim: { attempt: 1, bucket: '1970-01-01' } });
    expect(second).toMatchObject({ kind: 'in_progress', resource: undefined });
    const leaseLeftMs = second.kind === 'in_progress' ? second.leaseLeftMs : 0;
    expect(leaseLeftMs).toBeGreaterThan(20_000);
    expect(leaseLeftMs).toBeLessThanOrEqual(request.policy.leaseMs);
  });

  it('is granted to one of many that come at once, and the others see it run', async () => {
    const { store, database } = opened;
    const request = claimRequest();
    const other = await opened.open();

    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? store : other).claim(request)),
    );

    expect(outcomes.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === 'in_progress')).toHaveLength(19);
    expect(
      await database.rows('SELECT FROM idempotency_record WHERE request_id = $1', [request.key.text]),
    ).toHaveLength(1);
  });

  it('keeps the record of its policy: lease, retention, who claimed and with what', async () => {
    const policy = policyOf('CreatePayment', { leaseMs: 7_000, retentionMs: 60_000 });
    const request = claimRequest({ policy });
    const store = await opened.open({ instance: 'process-7' });

    const { expiresAt, ownerToken } = await claim(store, request);

    const [row] = await opened.database.rows<{ keptMs: number; scope: string; path: string; fingerprint: Buffer }>(
      `SELECT extract(epoch FROM $2::timestamptz - created_at)::float8 * 1000 AS "keptMs", scope, path, fingerprint
       FROM idempotency_record JOIN idempotency_method ON method = idempotency_method.id WHERE request_id = $1`,
      [request.key.text, expiresAt],
    );
    expect(row).toMatchObject({ scope: 'account-1', path: policy.path, fingerprint: request.fingerprint });
    // A Date holds milliseconds, the record microseconds.
    expect(Math.abs((row?.keptMs ?? 0) - 60_000)).toBeLessThanOrEqual(1);
    expect(await opened.record(request)).toMatchObject({
      ...{ state: 'claimed', attempt: 1, owner_token: ownerToken, instance: 'process-7', lease_ms: 7_000 },
    });
  });

  it('is a mismatch for another request, while the first one runs, when it is done, and when its lease is over', async () => {
    const { store } = opened;
    const running = claimRequest();
    const other = claimRequest({ requestId: running.key.text, orderId: 'order-2' });

    const claimed = await claim(store, running);
    expect(await store.claim(other)).toEqual({ kind: 'mismatch' });
    await opened.endLease(running);
    expect(await store.claim(other)).toEqual({ kind: 'mismatch' });
    expect(await opened.record(running)).toMatchObject({ attempt: 1, owner_token: claimed.ownerToken });
    await complete(store, claimed, answerOf('done'));
    expect(await store.claim(other)).toEqual({ kind: 'mismatch' });
    expect(await store.lookUp(other)).toEqual({ kind: 'mismatch' });
  });

  it('of the same key by another account, or for another method, is a claim of its own (cases F1, F2)', async () => {
    const { store, database } = opened;
    const request = claimRequest();
    const requestId = request.key.text;
    await complete(store, await claim(store, request), answerOf('of account-1'));

    await claim(store, claimRequest({ requestId, scope: 'account-2' }));
    await claim(store, claimRequest({ requestId, policy: policyOf('RefundPayment') }));

    expect(await database.rows('SELECT FROM idempotency_record WHERE request_id = $1', [requestId])).toHaveLength(3);
  });

  it('of a method that was not among the policies of the store is a broken promise, told as unavailable', async () => {
    const outcome = await opened.store.claim(claimRequest({ policy: policyOf('UpdatePayment') }));

    expect(outcome).toMatchObject({ kind: 'unavailable', error: expect.any(Error) as Error });
    const error = outcome.kind === 'unavailable' ? outcome.error : undefined;
    expect(String(error)).toContain('/payments.v1.PaymentsService/UpdatePayment was not among the policies');
  });
});
