import { claimRequest } from '../support/claim-requests';
import { claim, openTestStore, type TestStore } from '../support/store';

const results = Buffer.from('[]');

describe('the begin of an effect in the store (design 4.10)', () => {
  let opened: TestStore;
  beforeAll(async () => (opened = await openTestStore()));
  afterAll(() => opened.close());

  it('that is repeated, because its answer was lost, is held as before', async () => {
    const mine = await claim(opened.store, claimRequest());
    const draft = { recoveryPoint: 'charge#begun', results, after: undefined };

    expect(await opened.store.recordStepIfHeld(mine, draft)).toBe(true);
    expect(await opened.store.recordStepIfHeld(mine, draft)).toBe(true);
  });

  it('follows the recovery point that it was made after, and no other', async () => {
    const mine = await claim(opened.store, claimRequest());
    const charge = { recoveryPoint: 'charge#begun', results, after: undefined };
    const notify = { recoveryPoint: 'notify#begun', results, after: 'charge#begun' };

    expect(await opened.store.recordStepIfHeld(mine, notify)).toBe(false);
    expect(await opened.store.recordStepIfHeld(mine, charge)).toBe(true);
    expect(await opened.store.recordStepIfHeld(mine, notify)).toBe(true);
    // What was sent first, and arrives last.
    expect(await opened.store.recordStepIfHeld(mine, charge)).toBe(false);
  });
});
