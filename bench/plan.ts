import type { Work } from './handlers';
import type { Variant } from './messages';

/** How much is measured. */
export interface Extent {
  /** Pairs per comparison. */
  readonly pairs: number;
  /** Length of each side of a pair, milliseconds. */
  readonly sliceMs: number;
  /** Calls of each kind that each server gets before anything is measured. */
  readonly warmUpCalls: number;
}

/** About two minutes: shows a change of a tenth. */
export const QUICK: Extent = { pairs: 6, sliceMs: 400, warmUpCalls: 1_000 };
/** Below ten minutes: the numbers of the README. */
export const FULL: Extent = { pairs: 16, sliceMs: 800, warmUpCalls: 2_000 };

/** The kinds of calls that are measured. */
export type CallKind = { readonly kind: 'first'; readonly work: Work } | { readonly kind: 'replay' | 'read' | 'empty' };

/** One side of a comparison. */
export interface Side {
  readonly variant: Variant;
  readonly call: CallKind;
}

/** What is compared: `sides[0]` with each of the others. */
export interface Comparison {
  readonly name: string;
  readonly parallel: number;
  readonly measured: Side;
  readonly baselines: readonly Side[];
}

const first = (variant: Variant, work: Work): Side => ({ variant, call: { kind: 'first', work } });

const writes = (work: Work): readonly Comparison[] =>
  [1, 16, 64].map((parallel) => ({
    ...{ name: `${work} handler`, parallel, measured: first('protected', work) },
    baselines: [first('unprotected', work), first('unprotected, same adapter', work)],
  }));

/** What a service gains that brings the Prisma client it has. */
const anyClient: readonly Comparison[] = (['small', 'real'] as const).map((work) => ({
  ...{ name: `${work} handler, any client`, parallel: 16, measured: first('protected, any client', work) },
  baselines: [first('unprotected', work)],
}));

const replays: readonly Comparison[] = [16, 64].map((parallel) => ({
  ...{ name: 'replay', parallel, measured: { variant: 'protected', call: { kind: 'replay' } } },
  baselines: [first('protected', 'small')],
}));

const reads: readonly Comparison[] = (['read', 'empty'] as const).map((kind) => ({
  ...{ name: kind === 'read' ? 'safe read' : 'safe call without a statement', parallel: 16 },
  measured: { variant: 'protected', call: { kind } },
  baselines: [{ variant: 'unprotected, same adapter', call: { kind } }],
}));

/** Everything that the bench compares. */
export const COMPARISONS: readonly Comparison[] = [
  ...writes('small'),
  ...writes('real'),
  ...anyClient,
  ...replays,
  ...reads,
];
