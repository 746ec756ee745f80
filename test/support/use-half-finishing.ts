import type { ServerEvent } from '../../src/idempotency/index';
import { goOn, type HalfFinishing, startHalfFinishing } from './half-finished';

/** Nobody is waited for by completers that are started with this. */
export const AT_ONCE = { graceMs: 1 };

/** A service whose payments are left half way, and what its completers look at. The fields are there while tests run. */
export interface HalfFinishingInUse extends HalfFinishing {
  /** How often completers of the service have looked since the test began, or said 0. */
  looks: number;
  /** Holds what a look has found, until it resolves. It is resolved at the beginning of each test. */
  look: Promise<void>;
  /** Called when a claim is granted, which is held until it resolves. Does nothing at the beginning of each test. */
  onGranted: () => Promise<void>;
  /** What the service told of requests that completers ran. */
  resumed(): readonly ServerEvent[];
}

/** Starts the service before the tests of a file, has each begin without records, and stops it after. */
export function useHalfFinishing(): HalfFinishingInUse {
  const inUse = {} as HalfFinishingInUse;

  beforeAll(async () => {
    const started = await startHalfFinishing({
      wrapStore: (store) => ({
        ...store,
        claim: async (request) => {
          const outcome = await store.claim(request);
          if (outcome.kind === 'granted') await inUse.onGranted();
          return outcome;
        },
        findHalfFinished: async (terms) => {
          const held = inUse.look;
          const found = await store.findHalfFinished(terms);
          inUse.looks += 1;
          await held;
          return found;
        },
      }),
    });
    const resumed = () => started.service.events.filter(({ type }) => type === 'resumed');
    Object.assign(inUse, { ...started, resumed });
  });

  beforeEach(async () => {
    Object.assign(inUse, { looks: 0, look: goOn(), onGranted: goOn });
    await inUse.clear();
  });

  afterAll(() => inUse.service.stop());

  return inUse;
}
