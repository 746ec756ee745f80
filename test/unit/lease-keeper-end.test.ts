import { ClaimLostError } from '../../src/idempotency/errors';
import { heldAnswer, heldClaim, LEASE_MS, POLICY, testedKeeper, type TestedKeeper } from '../support/tested-keeper';

describe('ending all leases of a process (design 4.7, case N1)', () => {
  let tested: TestedKeeper;

  beforeEach(() => {
    jest.useFakeTimers();
    tested = testedKeeper();
  });

  afterEach(() => jest.useRealTimers());

  const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

  it('takes their tokens away in one statement, tells their attempts, and renews no more', async () => {
    const signals = ['a', 'b'].map((token) => tested.keep(token).signal());
    await tested.keeper.endAll();
    await pass(LEASE_MS);

    expect(tested.ended).toEqual([['a', 'b']]);
    for (const signal of signals) expect(signal.reason).toBeInstanceOf(ClaimLostError);
    expect(tested.events.filter(({ type }) => type === 'lease_ended')).toHaveLength(2);
    expect(tested.statements).toEqual([]);
    expect(tested.keeper.count()).toBe(0);
  });

  it('says whose requests they were, for those who search the log', async () => {
    tested.keeper.keep(heldClaim('a'), POLICY, performance.now(), 'key-a');
    await tested.keeper.endAll();
    expect(tested.events).toContainEqual({ type: 'lease_ended', path: POLICY.path, requestId: 'key-a' });
  });

  it('comes after a renewal that is under way, which has the rows in hand', async () => {
    const held = heldAnswer('renewed');
    tested.answer = held.answer;
    tested.keep('a');
    await pass(1_000);
    const ending = tested.keeper.endAll();
    await pass(1);
    expect(tested.ended).toEqual([]);
    held.letThrough();
    await ending;

    expect(tested.ended).toEqual([['a']]);
  });

  it('is nothing where there is none, though the store gives no answer', async () => {
    tested.endLeases = () => new Promise(() => undefined);
    await tested.keeper.endAll();
    expect(tested.ended).toEqual([]);
  });

  it.each([
    ['refuses', () => Promise.reject(new Error('away'))],
    ['gives no answer', () => new Promise<number>(() => undefined)],
  ])('is given up where the store %s, so that the process can end', async (_, store) => {
    tested.endLeases = store;
    tested.keep('a');
    const outcome = tested.keeper.endAll().then(
      () => 'ended',
      () => 'given up',
    );
    await pass(2_000);

    expect(await outcome).toBe('given up');
    expect(tested.events.filter(({ type }) => type === 'lease_ended')).toEqual([]);
  });

  it('keeps those that come later', async () => {
    tested.keep('a', { leaseMs: 300 });
    await tested.keeper.endAll();
    tested.keep('b');
    await pass(1_000);

    expect(tested.statements).toEqual([{ atMs: 1_000, tokens: ['b'] }]);
  });
});
