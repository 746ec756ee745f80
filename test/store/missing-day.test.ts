import { createDays } from '../../src/idempotency/index';
import { claimRequest, datedKey } from '../support/claim-requests';
import { openTestStore, type TestStore } from '../support/store';

describe('a claim whose day has no table', () => {
  let opened: TestStore;

  beforeAll(async () => void (opened = await openTestStore()));
  afterAll(() => opened.close());

  it('says what makes them, with what the database said, and is claimed once they are made', async () => {
    // Together, so that those that wait for the first go out in one statement.
    const requests = Array.from({ length: 5 }, () => claimRequest({ requestId: datedKey(Date.now()) }));

    for (const outcome of await Promise.all(requests.map((request) => opened.store.claim(request)))) {
      expect(outcome).toMatchObject({ kind: 'unavailable' });
      const { error } = outcome as { readonly error: Error };
      expect(error.message).toMatch(/no partition of relation "idempotency_record" found for row/);
      const remedy = /: call runRetention at the start and every hour, or run "npx grpc-idempotency maintain"$/;
      expect(error.message).toMatch(remedy);
      expect(error.message.match(/runRetention/g)).toHaveLength(1);
      expect(error.cause).toMatchObject({ code: 'P2010' });
    }

    await createDays(opened.connections.store);
    expect(await opened.store.claim(claimRequest({ requestId: datedKey(Date.now()) }))).toMatchObject({
      kind: 'granted',
    });
  });
});
