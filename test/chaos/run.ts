import { setTimeout as delay } from 'node:timers/promises';
import { checkBooks } from './books';
import { runCallers } from './callers';
import { createAsker } from './intents';
import { type FaultKind, type PlannedFault, planFaults } from './plan';
import { startWorld } from './world';

/** What is run. */
export interface ChaosOptions {
  readonly seed: number;
  /** For how long callers pay and things go wrong, milliseconds. */
  readonly forMs: number;
  readonly processes: number;
  readonly callers: number;
  /** Told what goes wrong, as it does. */
  readonly onFault?: (planned: PlannedFault) => void;
}

/** What a run counted. */
export interface ChaosReport {
  readonly payments: number;
  readonly refunds: number;
  /** Final answers, those to keys that were asked about again included. */
  readonly answers: number;
  /** Calls that left open what had become of them, and were made again under the same key. */
  readonly retries: number;
  /** Attempts that took a key over from one that was gone. */
  readonly takeovers: number;
  readonly faults: ReadonlyMap<FaultKind, number>;
  /** Everything that is wrong; none where the books agree. */
  readonly wrong: readonly string[];
}

/** How long callers may take for their last answers once nothing goes wrong any more, milliseconds. */
const ANSWERED_WITHIN_MS = 60_000;

const TAKEOVERS = 'SELECT coalesce(sum(attempt - 1), 0)::int AS count FROM idempotency_record';

/** Has services suffer what the seed plans while callers pay; then everything heals, and the books are checked. */
export async function runChaos({ seed, forMs, processes, callers, onFault }: ChaosOptions): Promise<ChaosReport> {
  const world = await startWorld(processes);
  const [enough, giveUp] = [new AbortController(), new AbortController()];
  const asker = createAsker(world.addresses, giveUp.signal);
  try {
    const faults = new Map<FaultKind, number>();
    const calling = runCallers(asker, { seed, callers, enough: enough.signal });
    await world.suffer(planFaults(seed, forMs, processes), (planned) => {
      const { kind } = planned.fault;
      faults.set(kind, (faults.get(kind) ?? 0) + 1);
      onFault?.(planned);
    });
    enough.abort();
    const intents = await Promise.race([calling, delay(ANSWERED_WITHIN_MS, undefined, { ref: false })]).then(
      (ended) => {
        giveUp.abort();
        return ended ?? calling;
      },
    );
    const wrong = [...world.crashes, ...(await checkBooks(world, intents))];
    const [takeovers] = await world.database.rows<{ count: number }>(TAKEOVERS);
    return {
      payments: intents.filter(({ kind }) => kind === 'payment').length,
      refunds: intents.filter(({ kind }) => kind === 'refund').length,
      answers: intents.reduce((sum, { answers }) => sum + answers.length, 0),
      retries: intents.reduce((sum, { retries }) => sum + retries, 0),
      ...{ takeovers: takeovers?.count ?? NaN, faults, wrong },
    };
  } finally {
    giveUp.abort();
    asker.close();
    await world.close();
  }
}
