import type { CodeCheck } from './checks-in-code';

/** Text, what stands there without the check, and the names of test files under test/ without their ending. */
export type Entry = readonly [text: string, replacement: string, ...tests: readonly string[]];

/** The checks of one source file in src/idempotency. */
export function checksOf(name: string, entries: readonly Entry[]): readonly CodeCheck[] {
  return entries.map(([text, replacement, ...tests]) => ({
    ...{ file: `src/idempotency/${name}.ts`, text, replacement },
    tests: tests.map((test) => `test/${test}.test.ts`),
  }));
}
