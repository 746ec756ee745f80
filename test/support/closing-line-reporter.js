'use strict';

/**
 * Ends a run with one line for people and programs alike: `N passed, N failed`, and `, N skipped` where some were. A test
 * file that could not be loaded counts as one failed test. JavaScript, since jest does not transform its reporters.
 *
 * @implements {import('@jest/reporters').Reporter}
 */
class ClosingLineReporter {
  /**
   * @param {unknown} _contexts
   * @param {import('@jest/test-result').AggregatedResult} results
   */
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    const line = `${results.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
    // Jest adds its own summary after all reporters, so the last line is the one that is written on the way out.
    process.once('exit', () => process.stdout.write(`\n${line}\n`));
  }
}

module.exports = ClosingLineReporter;
