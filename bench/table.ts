import type { Result } from './measure';
import type { Ratio } from './ratio';

const WIDTHS = { name: 30, parallel: 9, baseline: 26, ratio: 22 } as const;

/** The first lines of the table. */
export function heading(): readonly string[] {
  return [line('', 'parallel', 'against', ['throughput', 'p50', 'server CPU per call'])];
}

/** One comparison; each ratio with its 95 % interval. */
export function row({ name, parallel, baseline, throughput, p50, cpu }: Result): string {
  return line(name, String(parallel), baseline, [throughput, p50, cpu].map(text));
}

function text({ mean, low, high }: Ratio): string {
  return `${mean.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

function line(name: string, parallel: string, baseline: string, ratios: readonly string[]): string {
  const columns = [
    name.padEnd(WIDTHS.name),
    parallel.padStart(WIDTHS.parallel),
    `  ${baseline.padEnd(WIDTHS.baseline)}`,
    ...ratios.map((ratio) => ratio.padEnd(WIDTHS.ratio)),
  ];
  return columns.join('').trimEnd();
}
