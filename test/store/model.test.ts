import fc from 'fast-check';
import { createDays } from '../../src/idempotency/index';
import { policyOf } from '../support/claim-requests';
import { Model, type Step } from '../support/model';
import { anyStep, KNOWN_HISTORIES } from '../support/model-steps';
import { startWorld } from '../support/model-world';
import { openTestStore, type PaymentsStore, type TestStore } from '../support/store';

/** More of it: `MODEL_RUNS=1000`. The same again: `MODEL_SEED=…`, as the name of the test tells it. */
const RUNS = Number(process.env['MODEL_RUNS'] ?? 40);
const SEED = Number(process.env['MODEL_SEED'] ?? Date.now() % 2_147_483_648);
/** A run that found something is made smaller for a while. */
const WITHIN_MS = RUNS * 1_000;

describe('the store against a model of it (design 4.5–4.9, 4.11)', () => {
  let opened: TestStore;
  let stores: readonly PaymentsStore[];

  beforeAll(async () => {
    const policies = [policyOf('CreatePayment', { maxKeyAgeMs: 3 * 24 * 3_600_000 })];
    opened = await openTestStore(policies);
    stores = [opened.store, await opened.open({ instance: 'process-2' })];
    await createDays(opened.connections.store);
    await opened.database.rows('CREATE TABLE effect (request_id text, answer text)');
  });

  afterAll(() => opened.close());

  /** Takes the steps in both, and compares after each what was told and what is true. */
  const follow = async (steps: readonly Step[]): Promise<void> => {
    const model = new Model();
    const world = await startWorld(opened, stores);
    for (const [index, step] of steps.entries()) {
      const at = `step ${String(index)}, ${step.do}`;
      const told = await world.take(step, (handle) => model.handleOf(handle)?.token ?? 0);
      expect({ at, told }).toEqual({ at, told: model.take(step) });
      expect(world.handles()).toBe(model.handles.length);
      // At most one effect for a key, ever, and it is the one whose answer is handed out.
      const effects = [...(await world.effects())].sort();
      expect({ at, effects }).toEqual({ at, effects: [...model.committed].sort() });
    }
  };

  it(
    `does and tells the same, step by step (seed ${String(SEED)})`,
    async () => {
      await fc.assert(fc.asyncProperty(fc.array(anyStep(), { minLength: 5, maxLength: 30 }), follow), {
        numRuns: RUNS,
        seed: SEED,
        examples: KNOWN_HISTORIES.map((steps): [Step[]] => [[...steps]]),
        interruptAfterTimeLimit: WITHIN_MS,
      });
    },
    WITHIN_MS + 30_000,
  );
});
