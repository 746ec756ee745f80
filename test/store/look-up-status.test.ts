import { claimRequest } from '../support/claim-requests';
import { answerOf, claim, complete, openTestStore, type TestStore } from '../support/store';

describe('where a request stands, asked with its key alone', () => {
  let used: TestStore;

  beforeAll(async () => {
    used = await openTestStore();
  });

  afterAll(() => used.close());

  it('is told without the answer, which is for the same request only', async () => {
    const request = claimRequest();
    const held = await claim(used.store, request);
    await complete(used.store, held, { ...answerOf('the answer'), resource: 'payments/1' });
    const { policy, scope, key } = request;

    expect(await used.store.lookUpStatus({ policy, scope, key })).toEqual({
      kind: 'completed',
      ...{ code: 0, message: '', resource: 'payments/1', expiresAt: held.expiresAt },
      ...{ since: expect.any(Date) as unknown, completedAt: expect.any(Date) as unknown },
    });
  });

  it('names no resource where none was published', async () => {
    const request = claimRequest();
    await complete(used.store, await claim(used.store, request), answerOf('answer'));
    expect(await used.store.lookUpStatus(request)).toMatchObject({ kind: 'completed', resource: undefined });
  });

  test.each([
    ['scope', `scope = 'account-2'`],
    ['method', 'method = method + 1'],
    ['key', `request_id = 'another-key-of-the-same-id'`],
  ])('is told to nobody where the record with the id has another %s', async (_, change) => {
    const request = claimRequest();
    const { id } = await claim(used.store, request);
    await used.database.rows(`UPDATE idempotency_record SET ${change} WHERE id = $1`, [id]);
    await expect(used.store.lookUpStatus(request)).rejects.toThrow('belongs to another scope, method or key');
  });

  it('can only be asked of the methods that the store was opened with', async () => {
    const request = claimRequest();
    const policy = { ...request.policy, path: '/foreign.v1.Things/Touch' };
    const asked = (async () => used.store.lookUpStatus({ ...request, policy }))();
    await expect(asked).rejects.toThrow('/foreign.v1.Things/Touch was not among the policies');
  });
});
