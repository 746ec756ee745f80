import fc from 'fast-check';
import type { ConnectionFault } from '../support/connection-faults';

/** Something that goes wrong. Times are milliseconds, processes count from 0. */
export type Fault =
  /** A service is killed (SIGKILL), and started again later. */
  | { readonly kind: 'service killed'; readonly process: number; readonly downMs: number }
  /** A service stands still (SIGSTOP), for longer than a lease at times, and goes on as if nothing had been. */
  | { readonly kind: 'service frozen'; readonly process: number; readonly forMs: number }
  /** All connections of callers to a service are cut: what they asked for arrived, the answers are lost. */
  | { readonly kind: 'callers cut'; readonly process: number }
  /** Nothing passes between a service and its database, and nothing is closed. */
  | { readonly kind: 'database silent'; readonly process: number; readonly forMs: number }
  /** The next commits of a service are lost: before the server gets them, after it has carried them out, or for a while. */
  | { readonly kind: 'commits lost'; readonly process: number; readonly how: ConnectionFault; readonly times: number }
  /** The database is stopped in good order, or crashes, and comes back. */
  | { readonly kind: 'database restarted'; readonly mode: 'fast' | 'immediate'; readonly downMs: number }
  | { readonly kind: 'card network killed' };

/** The kinds of faults. */
export type FaultKind = Fault['kind'];

/** A fault and its time since the beginning, milliseconds. */
export interface PlannedFault {
  readonly atMs: number;
  readonly fault: Fault;
}

const HOW = ['cut before', 'cut after', 'stall before', 'stall after'] as const;

/**
 * What goes wrong, and when. The same seed plans the same; how the processes meet it is up to the machine.
 *
 * @param forMs nothing begins after that
 */
export function planFaults(seed: number, forMs: number, processes: number): readonly PlannedFault[] {
  const ms = (min: number, max: number) => fc.integer({ min, max });
  const process = fc.nat(processes - 1);
  const constant = <const Kind extends FaultKind>(kind: Kind) => fc.constant(kind);
  const fault: fc.Arbitrary<Fault> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: constant('service killed'), process, downMs: ms(0, 1_000) }) },
    { weight: 4, arbitrary: fc.record({ kind: constant('service frozen'), process, forMs: ms(200, 4_000) }) },
    { weight: 3, arbitrary: fc.record({ kind: constant('callers cut'), process }) },
    { weight: 2, arbitrary: fc.record({ kind: constant('database silent'), process, forMs: ms(200, 3_000) }) },
    {
      weight: 6,
      arbitrary: fc.record({
        ...{
          kind: constant('commits lost'),
          process,
          how: fc.constantFrom(...HOW),
          times: fc.integer({ min: 1, max: 4 }),
        },
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        ...{ kind: constant('database restarted'), mode: fc.constantFrom('fast', 'immediate'), downMs: ms(0, 1_500) },
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: constant('card network killed') }) },
  );
  const step = fc.record({ gapMs: ms(200, 1_500), fault });
  const planned: PlannedFault[] = [];
  let atMs = 0;
  // Evenly over all kinds and times: what fast-check prefers are small values, which would be short faults in bursts.
  for (const { gapMs, fault } of fc.sample(fc.noBias(step), { seed, numRuns: Math.ceil(forMs / 200) })) {
    atMs += gapMs;
    if (atMs > forMs) break;
    planned.push({ atMs, fault });
  }
  return planned;
}
