/** One check that can be taken out of the sources. */
export interface Guard {
  /** Names it on one line: `claim.ts TAKE_OVER_IF_EXPIRED: WHERE record.state = 'claimed'`. */
  readonly name: string;
  /** The source file, from the root of the package. */
  readonly file: string;
  /** The source file without the check. Throws where the check is no longer there. */
  readonly without: (source: string) => string;
  /** The statement without the check, where it is one of SQL: it must still be one. */
  readonly statement?: string;
  /** The test files that should see it, fast ones first. */
  readonly tests: readonly string[];
}

/** Guards, and what of their lists does not fit the sources any more. */
export interface FoundGuards {
  readonly guards: readonly Guard[];
  readonly faults: readonly string[];
}
