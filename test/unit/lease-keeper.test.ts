import { ClaimLostError } from '../../src/idempotency/errors';
import type { KeptLease } from '../../src/idempotency/server/kept-lease';
import {
  heldAnswer,
  heldClaim,
  LEASE_MS,
  POLICY,
  renewAll,
  testedKeeper,
  type TestedKeeper,
} from '../support/tested-keeper';

describe('the keeper of the leases of a process (design 4.7)', () => {
  let tested: TestedKeeper;

  beforeEach(() => {
    jest.useFakeTimers();
    tested = testedKeeper();
  });

  afterEach(() => jest.useRealTimers());

  const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
  const timesOf = () => tested.statements.map(({ atMs }) => atMs);

  it('renews each time a third of the lease is over, for as long as the attempt runs', async () => {
    const lease = tested.keep('a');
    await pass(2.5 * LEASE_MS);
    lease.end();
    await pass(5 * LEASE_MS);

    expect(timesOf()).toEqual([1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000]);
    expect(tested.results()).toEqual(Array(7).fill('renewed'));
  });

  it('lets no lease be too long for its timer', async () => {
    const days = 24 * 3_600_000;
    tested.keep('a', { leaseMs: 90 * days, maxExecutionMs: 900 * days });
    await pass(1_000);
    expect(jest.getTimerCount()).toBe(1);
    await pass(30 * days);

    expect(timesOf()).toEqual([30 * days]);
  });

  it('counts a lease from when it was asked for, not from when that was answered', async () => {
    const lease = tested.keeper.keep(heldClaim('a'), POLICY, performance.now() - 700);
    expect(lease.leftMs()).toBe(LEASE_MS - 700);
    tested.answer = async (renewed) => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return renewAll(renewed);
    };
    await pass(300 + 200);

    expect(timesOf()).toEqual([300]);
    expect(lease.leftMs()).toBe(LEASE_MS - 200);
  });

  it('renews all that are due in one statement, the next lease that is kept included', async () => {
    for (const token of ['a', 'b']) tested.keep(token);
    tested.keep('short', { leaseMs: LEASE_MS / 2 });
    await pass(1_000);

    expect(tested.statements).toEqual([
      { atMs: 500, tokens: ['short'] },
      { atMs: 1_000, tokens: ['a', 'b', 'short'] },
    ]);
  });

  it('brings leases together that were claimed one after the other: they are due in the same statements', async () => {
    for (let index = 0; index < 30; index += 1) {
      tested.keep(`${index}`);
      await pass(10);
    }
    await pass(5 * LEASE_MS);

    // Within a twenty-fourth of the lease, so 125 of these 300 ms, they go along with the first.
    const perRound = tested.statements.length / (5 * 3);
    expect(perRound).toBeLessThanOrEqual(4);
    expect(tested.statements.flatMap(({ tokens }) => tokens).length).toBeGreaterThanOrEqual(15 * 30);
  });

  it('splits what is more than a statement should carry, and renews all of it', async () => {
    for (let index = 0; index < 1_200; index += 1) tested.keep(`${index}`);
    await pass(1_000);

    expect(tested.statements.map(({ tokens }) => tokens.length)).toEqual([500, 500, 200]);
    expect(new Set(tested.statements.flatMap(({ tokens }) => tokens)).size).toBe(1_200);
  });

  it('renews up to max_execution; then the lease runs out and the signal fires', async () => {
    const policy = { maxExecutionMs: 2 * LEASE_MS };
    const { signal } = watched(tested.keep('a', policy));
    await pass(2 * LEASE_MS);
    const renewedUntil = timesOf().at(-1) ?? 0;
    expect(timesOf()).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
    expect(tested.events).toContainEqual({ type: 'execution_limit', path: POLICY.path });

    await pass(renewedUntil + LEASE_MS - 2 * LEASE_MS - 1);
    expect(signal.aborted).toBe(false);
    await pass(1);

    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(ClaimLostError);
    await pass(5 * LEASE_MS);
    expect(timesOf()).toHaveLength(5);
    expect(tested.events.filter(({ type }) => type === 'execution_limit')).toHaveLength(1);
  });

  it('renews nothing past max_execution, though the attempt completes', async () => {
    const lease = tested.keep('a', { maxExecutionMs: LEASE_MS });
    await pass(LEASE_MS + 100);
    const before = tested.statements.length;
    await lease.pause();

    expect(await lease.prolong()).toBe(true);
    expect(tested.statements).toHaveLength(before);
    await pass(2 * LEASE_MS);
    expect(lease.signal().aborted).toBe(false);
    lease.resume();
    await pass(1);
    expect(lease.signal().aborted).toBe(true);
    expect(await lease.prolong()).toBe(false);
    expect(tested.statements).toHaveLength(before);
  });

  it('is silent while a lease is paused, and comes back to it at once when that is over', async () => {
    const lease = tested.keep('a');
    tested.keep('b');
    await lease.pause();
    await pass(2_500);
    expect(tested.statements.map(({ tokens }) => tokens)).toEqual([['b'], ['b']]);

    lease.resume();
    await pass(1);
    expect(tested.statements.at(-1)?.tokens).toEqual(['a']);
  });

  it('lets a lease be paused only when no renewal of it is under way', async () => {
    const held = heldAnswer('renewed');
    tested.answer = held.answer;
    const lease = tested.keep('a');
    await pass(1_000);
    let paused = false;
    void lease.pause().then(() => (paused = true));
    await pass(100);
    expect(paused).toBe(false);
    held.letThrough();
    await pass(1);
    expect(paused).toBe(true);
  });

  it('does not renew what was paused or has ended while an earlier statement of the round was out', async () => {
    const held = heldAnswer('renewed');
    tested.answer = held.answer;
    const leases = Array.from({ length: 503 }, (_, index) => tested.keep(`${index}`));
    await pass(1_000);
    await leases[501]?.pause();
    leases[502]?.end();
    tested.answer = renewAll;
    held.letThrough();
    await pass(1);

    expect(tested.statements.map(({ tokens }) => tokens.length)).toEqual([500, 1]);
    expect(tested.statements[1]?.tokens).toEqual(['500']);
  });

  it('tells an attempt that its claim is lost, and no other', async () => {
    tested.answer = async (renewed) => renewed.map(({ claim }) => (claim.ownerToken === 'a' ? 'lost' : 'renewed'));
    const lost = watched(tested.keep('a'));
    const other = watched(tested.keep('b'));
    await pass(LEASE_MS);

    expect(lost.signal.reason).toBeInstanceOf(ClaimLostError);
    expect(other.signal.aborted).toBe(false);
    expect(tested.statements.map(({ tokens }) => tokens)).toEqual([['a', 'b'], ['b'], ['b']]);
    expect(tested.results()).toEqual(['lost', 'renewed', 'renewed', 'renewed']);
    expect(await lost.lease.prolong()).toBe(false);
    expect(tested.statements).toHaveLength(3);
  });

  it('gives the signal of a lost claim also to who looks later', async () => {
    tested.answer = async (renewed) => renewed.map(() => 'lost');
    const lease = tested.keep('a');
    await pass(1_000);

    expect(lease.signal().aborted).toBe(true);
    expect(lease.signal()).toBe(lease.signal());
  });

  it.each(['busy', 'failed'] as const)('tries again soon where a renewal was %s, and loses nothing', async (result) => {
    let times = 0;
    tested.answer = async (renewed) => {
      times += 1;
      if (times > 2) return renewAll(renewed);
      if (result === 'failed') throw new Error('away');
      return renewed.map(() => result);
    };
    const leases = ['a', 'b'].map((token) => watched(tested.keep(token)));
    await pass(1_500);

    expect(timesOf()).toEqual([1_000, 1_250, 1_500]);
    expect(tested.results()).toEqual([result, result, result, result, 'renewed', 'renewed']);
    for (const { signal } of leases) expect(signal.aborted).toBe(false);
    const faults = tested.events.flatMap((event) => (event.type === 'fault' ? [event.what] : []));
    expect(faults).toEqual(result === 'failed' ? Array(2).fill('2 leases could not be renewed') : []);
  });

  it('does not wait for a statement that never comes back: others go out beside it (case B4)', async () => {
    tested.answer = () => new Promise(() => undefined);
    const lease = watched(tested.keep('a'));
    await pass(1_000);
    tested.answer = renewAll;
    await pass(1_000);

    expect(timesOf()).toEqual([1_000, 2_000]);
    expect(tested.results()).toEqual(['failed', 'renewed']);
    expect(lease.lease.leftMs()).toBe(LEASE_MS);
    await pass(1_000);
    expect(timesOf()).toEqual([1_000, 2_000, 3_000]);
  });

  it('lets nobody wait for ever who completes while the store gives no answer', async () => {
    tested.answer = () => new Promise(() => undefined);
    const lease = tested.keep('a');
    await pass(1_000);
    let prolonged: boolean | undefined;
    void lease
      .pause()
      .then(() => lease.prolong())
      .then((still) => (prolonged = still));
    await pass(LEASE_MS / 2);

    expect(prolonged).toBe(true);
    expect(timesOf()).toEqual([1_000, 1_750]);
  });

  it('takes what ended by itself while its renewal was under way for no loss', async () => {
    const held = heldAnswer('lost');
    tested.answer = held.answer;
    const { lease, signal } = watched(tested.keep('a'));
    await pass(1_000);
    lease.end();
    held.letThrough();
    await pass(1);

    expect(tested.results()).toEqual([]);
    expect(signal.aborted).toBe(false);
  });

  it('renews under the token that holds the key now, and no more under the one before', async () => {
    const lease = tested.keep('a');
    await lease.pause();
    lease.replace(heldClaim('settled'));
    lease.resume();
    await pass(1_000);

    expect(tested.statements.map(({ tokens }) => tokens)).toEqual([['settled']]);
    expect(lease.claim().ownerToken).toBe('settled');
  });

  it('counts the claims that are under way with the leases, since each may become one', async () => {
    let answerClaim = (): void => undefined;
    const claiming = tested.keeper.claiming(() => new Promise<void>((resolve) => (answerClaim = resolve)));
    const failing = tested.keeper.claiming(() => Promise.reject(new Error('away')));
    failing.catch(() => undefined);
    tested.keep('a');
    expect(tested.keeper.count()).toBe(3);
    answerClaim();
    await claiming;
    await expect(failing).rejects.toThrow('away');

    expect(tested.keeper.count()).toBe(1);
  });
});

function watched(lease: KeptLease) {
  return { lease, signal: lease.signal() };
}
