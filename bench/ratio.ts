/** A ratio of two quantities that were measured in pairs, and where the true one lies with 95 % confidence. */
export interface Ratio {
  /** Geometric mean of the pairs' ratios. */
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  readonly pairs: number;
}

/** Two-sided 97.5 % quantiles of Student's t by degrees of freedom, from 1; beyond the last, the normal one is close. */
const T_QUANTILES: readonly number[] = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/**
 * Student's t interval of the mean logarithm: what slows both sides of a pair down cancels out, and twice as fast weighs
 * as much as half as fast.
 *
 * @param pairs at least two, each [measured, baseline]
 */
export function pairedRatio(pairs: readonly (readonly [number, number])[]): Ratio {
  const count = pairs.length;
  if (count < 2) throw new RangeError('an interval needs two pairs');
  const logs = pairs.map(([measured, baseline]) => Math.log(measured / baseline));
  const mean = logs.reduce((sum, log) => sum + log, 0) / count;
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (count - 1);
  const margin = (T_QUANTILES[count - 2] ?? 1.96) * Math.sqrt(variance / count);
  return { mean: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin), pairs: count };
}
