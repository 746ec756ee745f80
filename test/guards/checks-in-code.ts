import { STORE_CHECKS } from './checks-in-store';
import { SERVER_CHECKS } from './checks-in-server';

/** A check before an effect, by its text in a source file. */
export interface CodeCheck {
  /** From the root of the package. */
  readonly file: string;
  /** Found there exactly once. */
  readonly text: string;
  /** What stands there without the check. */
  readonly replacement: string;
  /** The test files that should see it, fast ones first. */
  readonly tests: readonly string[];
}

/** All that are listed. A check in the SQL is found by itself and not listed, except where it stands in no WHERE. */
export const CHECKS_IN_CODE: readonly CodeCheck[] = [...STORE_CHECKS, ...SERVER_CHECKS];
