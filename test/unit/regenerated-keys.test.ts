import { createRegeneratedKeys, type RegeneratedKeys } from '../../src/idempotency/server/regenerated-keys';
import { claimRequest, policyOf } from '../support/claim-requests';

/** The window in which keys of one content count, milliseconds. */
const WINDOW_MS = 30_000;

describe('keys that are made anew per attempt (design 3.4)', () => {
  let keys: RegeneratedKeys;

  beforeEach(() => {
    jest.useFakeTimers();
    keys = createRegeneratedKeys();
  });

  afterEach(() => jest.useRealTimers());

  const claimed = (change: Parameters<typeof claimRequest>[0] = {}) => keys.claimed(claimRequest(change));

  it('are suspected at the third key of one content, once', () => {
    expect([claimed(), claimed(), claimed(), claimed()]).toEqual([false, false, true, false]);
  });

  it('are those of one content, one account and one method', () => {
    for (const change of [{}, { orderId: 'order-2' }, { scope: 'account-2' }, { policy: policyOf('RefundPayment') }]) {
      expect([claimed(change), claimed(change)]).toEqual([false, false]);
    }
  });

  it('come within seconds; after that it is counted anew, and told anew', () => {
    claimed();
    jest.advanceTimersByTime(WINDOW_MS - 1);
    expect(claimed()).toBe(false);
    jest.advanceTimersByTime(1);
    expect([claimed(), claimed(), claimed()]).toEqual([false, false, true]);
  });

  it('are looked for in a bounded memory, which forgets the oldest content first', () => {
    for (const orderId of ['oldest', 'oldest', 'young', 'young']) claimed({ orderId });
    for (let other = 0; other < 4_095; other += 1) claimed({ orderId: `other-${other}` });

    expect(claimed({ orderId: 'young' })).toBe(true);
    expect(claimed({ orderId: 'oldest' })).toBe(false);
  });
});
