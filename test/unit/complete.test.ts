import { completeInOneTransaction } from '../../src/idempotency/server/complete';
import type { IdempotencyStore } from '../../src/idempotency/index';

type Tx = Record<string, never>;

/** A store whose transactions are always chosen to be run again. */
function createStore(): { readonly store: IdempotencyStore<Tx>; readonly runs: () => number } {
  let runs = 0;
  const notUsed = () => Promise.reject(new Error('not used'));
  const store: IdempotencyStore<Tx> = {
    ...{
      claim: notUsed,
      lookUp: notUsed,
      lookUpStatus: notUsed,
      stillRunning: notUsed,
      renewIfHeld: notUsed,
      endLeasesIfHeld: notUsed,
      pauseIfHeld: notUsed,
      publishIfHeld: notUsed,
      settle: notUsed,
      recordStepIfHeld: notUsed,
      recordStepInTransactionIfHeld: notUsed,
      completeIfHeld: notUsed,
      assertNotAborted: notUsed,
      findHalfFinished: notUsed,
      countStranded: notUsed,
      takeOverHalfFinished: notUsed,
      releaseIfHeld: notUsed,
    },
    placeOf: () => ({ bucket: '1970-01-01', id: '' }),
    transaction: () => {
      runs += 1;
      return Promise.reject(new Error('serialization failure'));
    },
    readFault: () => ({ fenced: false, runAgain: true, rolledBack: true, outage: false }),
  };
  return { store, runs: () => runs };
}

describe('a completion that the database never chooses', () => {
  const complete = (store: IdempotencyStore<Tx>, timeoutMs: number) =>
    completeInOneTransaction({
      ...{
        store,
        claim: undefined,
        policy: { recording: 'FULL', maxResponseBytes: 100 } as const,
        work: () => Promise.resolve('done'),
        serialize: (text: string) => Buffer.from(text),
      },
      limits: { maxWaitMs: timeoutMs, timeoutMs },
    });

  it('is run four times, and its failure is thrown on', async () => {
    const { store, runs } = createStore();

    await expect(complete(store, 60_000)).rejects.toThrow('serialization failure');
    expect(runs()).toBe(4);
  });

  it('is not run again when its lease is over: another owner may be at work', async () => {
    const { store, runs } = createStore();

    await expect(complete(store, 0)).rejects.toThrow('serialization failure');
    expect(runs()).toBe(1);
  });
});

describe('a completion without a claim', () => {
  it('whose transaction the database has aborted meanwhile is no success', async () => {
    let ended: Promise<unknown> | undefined;
    const store: IdempotencyStore<Tx> = {
      ...createStore().store,
      transaction: (work) => {
        const running = work({});
        ended = running;
        return running;
      },
      assertNotAborted: () => Promise.reject(new Error('current transaction is aborted')),
      readFault: () => ({ fenced: false, runAgain: false, rolledBack: true, outage: false }),
    };

    await expect(
      completeInOneTransaction({
        ...{ store, claim: undefined, policy: { recording: 'FULL', maxResponseBytes: 100 } as const },
        work: () => Promise.resolve('done'),
        serialize: (text: string) => Buffer.from(text),
        limits: { maxWaitMs: 1_000, timeoutMs: 1_000 },
      }),
    ).rejects.toThrow('current transaction is aborted');
    // What leaves the function with an error is rolled back.
    await expect(ended).rejects.toThrow('current transaction is aborted');
  });
});
