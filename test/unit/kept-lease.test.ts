import { ClaimLostError } from '../../src/idempotency/errors';
import { createKeptLease, type KeptLease } from '../../src/idempotency/server/kept-lease';
import { heldClaim, LEASE_MS, POLICY } from '../support/tested-keeper';

describe('the lease of one attempt, as its process knows it (design 4.7)', () => {
  let prolonged: number;
  let resumed: number;
  let ended: number;

  beforeEach(() => {
    jest.useFakeTimers();
    [prolonged, resumed, ended] = [0, 0, 0];
  });

  afterEach(() => jest.useRealTimers());

  const keep = (change: Partial<typeof POLICY> = {}): KeptLease =>
    createKeptLease({
      claim: heldClaim('a'),
      policy: { ...POLICY, ...change },
      heldSinceMs: performance.now(),
      underWay: () => Promise.resolve(),
      prolong: async () => void (prolonged += 1),
      resumed: () => (resumed += 1),
      ended: () => (ended += 1),
    });

  const inMs = (atMs: number): number => atMs - performance.now();

  it('runs out, and begins anew when a renewal was asked for, not when it was answered', () => {
    const lease = keep();
    jest.advanceTimersByTime(1_000);
    expect(lease.leftMs()).toBe(LEASE_MS - 1_000);
    const askedAtMs = performance.now();
    jest.advanceTimersByTime(400);
    lease.renewed('renewed', askedAtMs);

    expect(lease.leftMs()).toBe(LEASE_MS - 400);
    expect(inMs(lease.dueAtMs())).toBe(LEASE_MS / 3 - 400);
    jest.advanceTimersByTime(LEASE_MS);
    expect(lease.leftMs()).toBeLessThan(0);
  });

  it('is due after a third, and may go along with others a little before', () => {
    const lease = keep();
    expect(inMs(lease.dueAtMs())).toBe(LEASE_MS / 3);
    expect(inMs(lease.renewableAtMs())).toBe(LEASE_MS / 3 - LEASE_MS / 24);
  });

  it('ends its renewals at max_execution, also where that is shorter than a lease', () => {
    const lease = keep({ maxExecutionMs: 500 });
    expect(inMs(lease.dueAtMs())).toBe(500);
    expect(lease.isOverLimit(performance.now() + 499)).toBe(false);
    jest.advanceTimersByTime(500);
    expect(lease.isOverLimit(performance.now())).toBe(true);

    expect(lease.endRenewals(performance.now())).toBe(true);
    expect(lease.renewableAtMs()).toBe(Infinity);
    expect(inMs(lease.dueAtMs())).toBe(LEASE_MS - 500);
    expect(lease.signal().aborted).toBe(false);
    jest.advanceTimersByTime(LEASE_MS - 500);
    expect(lease.endRenewals(performance.now())).toBe(false);
    expect(lease.signal().reason).toBeInstanceOf(ClaimLostError);
    expect(lease.dueAtMs()).toBe(Infinity);
  });

  it('is not due while it is paused, whether its renewals have ended or not', async () => {
    const lease = keep({ maxExecutionMs: 500 });
    await lease.pause();
    expect([lease.dueAtMs(), lease.renewableAtMs()]).toEqual([Infinity, Infinity]);
    lease.resume();
    lease.endRenewals(performance.now() + 500);
    await lease.pause();
    expect([lease.dueAtMs(), lease.renewableAtMs()]).toEqual([Infinity, Infinity]);
    lease.resume();
    expect(inMs(lease.dueAtMs())).toBe(LEASE_MS);
    expect(resumed).toBe(2);
  });

  it('is prolonged on demand only while it may be renewed', async () => {
    const lease = keep({ maxExecutionMs: 500 });
    expect(await lease.prolong()).toBe(true);
    jest.advanceTimersByTime(500);
    expect(await lease.prolong()).toBe(true);
    lease.lose('gone');
    expect(await lease.prolong()).toBe(false);
    expect(prolonged).toBe(1);
  });

  it('is lost once: the first reason stays, and whoever asks for the signal later finds it fired', () => {
    const lease = keep();
    lease.renewed('lost', performance.now());
    lease.lose('something else');

    expect(lease.signal().aborted).toBe(true);
    expect(String(lease.signal().reason)).toContain('somebody else has taken the claim');
    expect(lease.dueAtMs()).toBe(Infinity);
  });

  it('is over with its attempt, and no loss', () => {
    const lease = keep();
    const signal = lease.signal();
    lease.end();

    expect(ended).toBe(1);
    expect(signal.aborted).toBe(false);
    expect(lease.dueAtMs()).toBe(Infinity);
  });
});
