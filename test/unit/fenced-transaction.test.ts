import { type FencedOutcome, runFenced } from '../../src/idempotency/server/fenced-transaction';
import type { IdempotencyStore } from '../../src/idempotency/store/store';
import { deferred } from '../support/deferred';

type Tx = Record<string, never>;
type Transaction = IdempotencyStore<Tx>['transaction'];

const DAY_MS = 24 * 3_600_000;

describe('a fenced transaction whose fence refuses (design 4.8)', () => {
  const fault = { fenced: true, runAgain: false, rolledBack: true, outage: false };
  const refusal = new Error('claim is not held');
  const runWith = (transaction: Transaction, fence: () => Promise<string>) =>
    runFenced<Tx, string, string>({
      store: { transaction, readFault: (error) => (error === refusal ? fault : { ...fault, fenced: false }) },
      limits: { maxWaitMs: 1_000, timeoutMs: 1_000 },
      work: () => Promise.resolve('done'),
      fence,
    });

  it('at its COMMIT is told as fenced, and nothing of it as done', async () => {
    const atCommit: Transaction = async (work) => {
      await work({});
      throw refusal;
    };
    expect(await runWith(atCommit, () => Promise.resolve('done'))).toEqual({ kind: 'fenced' });
  });

  it('in its place is told as fenced too: a driver need not keep it back', async () => {
    const inPlace: Transaction = (work) => work({});
    expect(await runWith(inPlace, () => Promise.reject(refusal))).toEqual({ kind: 'fenced' });
  });
});

describe('a fenced transaction whose function fails', () => {
  it('with what reads like a refusal is a failure of its own: it may quote its caller', async () => {
    const refusal = new Error('claim is not held');
    const failed = runFenced<Tx, string, string>({
      store: {
        transaction: (work) => work({}),
        readFault: () => ({ fenced: true, runAgain: false, rolledBack: true, outage: false }),
      },
      limits: { maxWaitMs: 1_000, timeoutMs: 1_000 },
      work: () => Promise.reject(refusal),
      fence: (_, returned) => Promise.resolve(returned),
    });
    await expect(failed).rejects.toBe(refusal);
  });
});

describe('a fenced transaction that gets no answer in its time (design 4.8)', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  /** Runs one in a store whose transactions go like this; its claim is held. */
  function run(transaction: Transaction, timeoutMs: number): { outcome: FencedOutcome<string> | undefined } {
    const running: { outcome: FencedOutcome<string> | undefined } = { outcome: undefined };
    void runFenced<Tx, string, string>({
      store: { transaction, readFault: () => ({ fenced: false, runAgain: false, rolledBack: false, outage: true }) },
      limits: { maxWaitMs: timeoutMs, timeoutMs },
      work: () => Promise.resolve('done'),
      fence: (_, returned) => Promise.resolve(returned),
    }).then((outcome) => (running.outcome = outcome));
    return running;
  }

  it('and was given up as never committed does not commit when its turn comes late', async () => {
    const turn = deferred();
    let end: Promise<unknown> | undefined;
    const running = run(async (work) => {
      await turn.promise;
      const committing = work({});
      end = committing;
      return committing;
    }, 2_000);
    // Its wait for a connection, its own time, and a second.
    await jest.advanceTimersByTimeAsync(5_000);
    expect(running.outcome?.kind).toBe('never_committed');

    turn.resolve();
    await jest.advanceTimersByTimeAsync(0);

    // What leaves the function with an error is rolled back.
    await expect(end).rejects.toThrow();
  });

  it.each([14, 24])('has its time where that is %s days, more than a timer can wait for', async (days) => {
    const turn = deferred();
    const running = run(async (work) => {
      await turn.promise;
      return work({});
    }, days * DAY_MS);

    await jest.advanceTimersByTimeAsync(days * DAY_MS);
    expect(running.outcome).toBeUndefined();

    turn.resolve();
    await jest.advanceTimersByTimeAsync(0);
    expect(running.outcome).toEqual({ kind: 'committed', value: 'done' });
  });

  it.each([
    ['five seconds, however long it may take', 60_000, 5_000],
    ['its own time, where that is shorter', 2_000, 2_000],
  ])('to its COMMIT is waited for %s', async (_, timeoutMs, expectedMs) => {
    const running = run(async (work) => {
      await work({});
      return new Promise<never>(() => undefined);
    }, timeoutMs);

    await jest.advanceTimersByTimeAsync(expectedMs - 1);
    expect(running.outcome).toBeUndefined();
    await jest.advanceTimersByTimeAsync(1);
    expect(running.outcome).toMatchObject({ kind: 'unknown', value: 'done' });
  });
});
