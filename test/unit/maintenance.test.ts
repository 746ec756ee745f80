import { startMaintenance } from '../../src/ops/maintenance';

describe('maintenance', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const start = (runOnce: (signal: AbortSignal) => Promise<unknown>) => {
    const errors: unknown[] = [];
    const maintenance = startMaintenance({
      ...{ runOnce, intervalMs: 1_000, firstAfterMs: 10, onError: (error: unknown) => errors.push(error) },
    });
    return { maintenance, errors };
  };

  it('runs soon after the start and then at every interval, also after a round that failed', async () => {
    let rounds = 0;
    const { maintenance, errors } = start(() => {
      rounds += 1;
      return rounds === 1 ? Promise.reject(new Error('first')) : Promise.resolve();
    });

    expect(rounds).toBe(0);
    await jest.advanceTimersByTimeAsync(10);
    expect(rounds).toBe(1);
    await jest.advanceTimersByTimeAsync(999);
    expect(rounds).toBe(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(rounds).toBe(2);
    expect(errors).toEqual([new Error('first')]);
    await maintenance.stop();
  });

  it('rests after a round as many times as long as that took, where it is told to', async () => {
    let rounds = 0;
    const maintenance = startMaintenance({
      ...{ intervalMs: 1_000, firstAfterMs: 10, restFactor: 100, onError: () => undefined },
      runOnce: async () => {
        rounds += 1;
        if (rounds === 2) await new Promise((resolve) => setTimeout(resolve, 50));
      },
    });
    await jest.advanceTimersByTimeAsync(1_010);
    expect(rounds).toBe(2);
    await jest.advanceTimersByTimeAsync(50 + 4_999);
    expect(rounds).toBe(2);
    await jest.advanceTimersByTimeAsync(1);
    expect(rounds).toBe(3);
    // A short round is followed by the interval again.
    await jest.advanceTimersByTimeAsync(1_000);
    expect(rounds).toBe(4);
    await maintenance.stop();
  });

  it('runs one round at a time, and at its stop tells it and waits for it', async () => {
    let rounds = 0;
    let end: (() => void) | undefined;
    let signal: AbortSignal | undefined;
    const { maintenance } = start((given) => {
      rounds += 1;
      signal = given;
      return new Promise<void>((resolve) => (end = resolve));
    });
    await jest.advanceTimersByTimeAsync(5_000);
    expect(rounds).toBe(1);

    let isStopped = false;
    const stopped = maintenance.stop().then(() => (isStopped = true));
    await jest.advanceTimersByTimeAsync(0);
    expect(signal?.aborted).toBe(true);
    expect(isStopped).toBe(false);

    end?.();
    await stopped;
    await jest.advanceTimersByTimeAsync(5_000);
    expect(rounds).toBe(1);
  });

  it('runs nothing when it was stopped before its first round', async () => {
    let rounds = 0;
    const { maintenance } = start(() => Promise.resolve((rounds += 1)));
    await maintenance.stop();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(rounds).toBe(0);
  });

  it('does not wait at its stop for a round that never ends: a frozen database keeps no process', async () => {
    const { maintenance } = start(() => new Promise<void>(() => undefined));
    await jest.advanceTimersByTimeAsync(10);
    let stopped = false;
    const stopping = maintenance.stop().then(() => (stopped = true));
    await jest.advanceTimersByTimeAsync(1_999);
    expect(stopped).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    await stopping;
    expect(stopped).toBe(true);
  });
});
