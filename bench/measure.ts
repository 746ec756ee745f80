import type { Variant } from './messages';
import { type Call, load, type Slice, warm } from './load';
import type { CallKind, Comparison, Extent, Side } from './plan';
import { pairedRatio, type Ratio } from './ratio';
import type { ServerProcess } from './server-process';

/** A comparison with one of its baselines. */
export interface Result {
  readonly name: string;
  readonly parallel: number;
  readonly baseline: string;
  /** Calls per second: more is better. */
  readonly throughput: Ratio;
  /** Median time of a call: less is better. */
  readonly p50: Ratio;
  /** Processor time of the server's process per call: less is better. */
  readonly cpu: Ratio;
}

/** What the comparisons are measured with. */
export interface Bench {
  readonly servers: ReadonlyMap<Variant, ServerProcess>;
  readonly call: (kind: CallKind) => Call;
  readonly extent: Extent;
}

/** Measures all sides in turn, the next time in the opposite order, so that whatever drifts falls on each alike. */
export async function compare(bench: Bench, comparison: Comparison): Promise<readonly Result[]> {
  const sides = [comparison.measured, ...comparison.baselines];
  const slices = sides.map((): Slice[] => []);
  for (let pair = 0; pair < bench.extent.pairs; pair += 1) {
    const order = sides.map((_, index) => (pair % 2 === 0 ? index : sides.length - 1 - index));
    for (const index of order) slices[index]?.push(await measure(bench, sides[index] as Side, comparison.parallel));
  }
  const [measured = [], ...baselines] = slices;
  return baselines.map((baseline, index) => {
    const ratio = (of: (slice: Slice) => number): Ratio =>
      pairedRatio(measured.map((slice, pair) => [of(slice), of(baseline[pair] as Slice)]));
    return {
      ...{ name: comparison.name, parallel: comparison.parallel, baseline: label(comparison.baselines[index] as Side) },
      throughput: ratio(({ callsPerSecond }) => callsPerSecond),
      p50: ratio(({ p50Ms }) => p50Ms),
      cpu: ratio(({ cpuUs }) => cpuUs),
    };
  });
}

/**
 * Calls each server until its code is compiled and its connections have their plans. By number and not by time: of two
 * servers on a busy machine the slower one would stay cold.
 */
export async function warmUp({ servers, call, extent }: Bench): Promise<void> {
  const kinds: readonly CallKind[] = [
    { kind: 'first', work: 'small' },
    { kind: 'first', work: 'real' },
    { kind: 'read' },
  ];
  for (const kind of kinds) {
    for (const server of servers.values()) await warm(server, call(kind), extent.warmUpCalls);
  }
}

function measure({ servers, call, extent }: Bench, side: Side, parallel: number): Promise<Slice> {
  const server = servers.get(side.variant);
  if (server === undefined) throw new Error(`there is no ${side.variant} server`);
  return load(server, call(side.call), { parallel, durationMs: extent.sliceMs });
}

function label({ variant, call }: Side): string {
  return variant === 'protected' && call.kind === 'first' ? 'first execution' : variant;
}
