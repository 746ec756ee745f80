/** What must be undone when the run of all tests ends. */
export interface TestRun {
  /** Adds a step; the last one added is taken first. */
  atEnd(step: () => Promise<void>): void;
  /** Takes all steps. Later calls wait for the first. */
  end(): Promise<void>;
}

declare global {
  /** The way that jest offers from its global set-up to its global teardown. Test files don't see it. */
  var grpcIdempotencyTestRun: TestRun | undefined;
}

/** Signals that end a run early: Ctrl-C, an ended job, a closed terminal; with the exit codes that shells give them. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Starts the list of steps, which an interrupted run takes too. */
export function beginTestRun(): TestRun {
  const steps: (() => Promise<void>)[] = [];
  let ending: Promise<void> | undefined;
  const takeSteps = async () => {
    for (const step of steps.reverse()) await step();
  };
  const run: TestRun = {
    atEnd: (step) => steps.push(step),
    end: () => (ending ??= takeSteps()),
  };
  for (const [signal, exitCode] of Object.entries(SIGNALS)) {
    process.once(signal, () => {
      void run.end().finally(() => process.exit(exitCode));
    });
  }
  globalThis.grpcIdempotencyTestRun = run;
  return run;
}
