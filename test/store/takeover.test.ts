import { claimRequest, policyOf } from '../support/claim-requests';
import { answerOf, claim, complete, held, idOf, openTestStore, type TestStore } from '../support/store';
import { TAKE_OVER_IF_EXPIRED } from '../../src/idempotency/store/sql/claim';
import type { ClaimRequest } from '../../src/idempotency/store/store';

const NEW_TOKEN = '00000000-0000-4000-8000-00000000000a';

describe('a takeover', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  /** The statement alone, as a process runs it that has read the record a moment ago. */
  const takeOver = (request: ClaimRequest, tokenSeen: string): Promise<unknown[]> =>
    opened.connections.store.$queryRawUnsafe<unknown[]>(
      ...[TAKE_OVER_IF_EXPIRED, request.key.bucket, idOf(request), tokenSeen, NEW_TOKEN, 30_000, 'process-2'],
    );

  it('gives a claim whose lease is over to another owner, with a new token, lease and attempt', async () => {
    const policy = policyOf('CreatePayment', { leaseMs: 7_000 });
    const request = claimRequest({ policy });
    const first = await claim(opened.store, request);
    await opened.endLease(request);
    const successor = await opened.open({ instance: 'process-2' });

    const outcome = await successor.claim(request);

    expect(outcome).toMatchObject({
      kind: 'granted',
      takeover: true,
      claim: { attempt: 2, expiresAt: first.expiresAt },
    });
    const second = held(outcome);
    expect(second.ownerToken).not.toBe(first.ownerToken);
    const [row] = await opened.database.rows<{ leaseMs: number }>(
      `SELECT extract(epoch FROM lease_until - now())::float8 * 1000 AS "leaseMs"
       FROM idempotency_record WHERE request_id = $1`,
      [request.key.text],
    );
    expect(row?.leaseMs).toBeGreaterThan(3_000);
    expect(row?.leaseMs).toBeLessThanOrEqual(7_000);
    expect(await opened.record(request)).toMatchObject({
      ...{ state: 'claimed', attempt: 2, owner_token: second.ownerToken, instance: 'process-2' },
    });
  });

  it('goes to one of many that come when the lease is over', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    await opened.endLease(request);
    const other = await opened.open();

    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? opened.store : other).claim(request)),
    );

    expect(outcomes.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === 'in_progress')).toHaveLength(19);
    expect(await opened.record(request)).toMatchObject({ attempt: 2 });
  });

  it('does not touch a claim whose lease still runs', async () => {
    const request = claimRequest();
    const { ownerToken } = await claim(opened.store, request);

    expect(await takeOver(request, ownerToken)).toEqual([]);
    expect(await opened.record(request)).toMatchObject({ attempt: 1, owner_token: ownerToken });
  });

  it('is by the token that was seen: whoever saw an older owner gets nothing', async () => {
    const request = claimRequest();
    const first = await claim(opened.store, request);
    await opened.endLease(request);
    const second = await claim(opened.store, request);
    await opened.endLease(request);

    expect(await takeOver(request, first.ownerToken)).toEqual([]);
    expect(await opened.record(request)).toMatchObject({ attempt: 2, owner_token: second.ownerToken });
    expect(await takeOver(request, second.ownerToken)).toHaveLength(1);
  });

  it('does not touch a record that was completed after it was seen', async () => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    await complete(opened.store, claimed, answerOf('done'));
    await opened.endLease(request);

    expect(await takeOver(request, claimed.ownerToken)).toEqual([]);
    expect(await opened.record(request)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('touches no other record, though its token and lease fit', async () => {
    const request = claimRequest();
    const neighbour = claimRequest();
    const { ownerToken } = await claim(opened.store, request);
    await claim(opened.store, neighbour);
    await opened.database.rows(
      `UPDATE idempotency_record SET lease_until = now(), owner_token = $1 WHERE request_id = ANY ($2)`,
      [ownerToken, [request.key.text, neighbour.key.text]],
    );

    expect(await takeOver(request, ownerToken)).toHaveLength(1);
    expect(await opened.record(neighbour)).toMatchObject({ attempt: 1, owner_token: ownerToken });
  });
});
