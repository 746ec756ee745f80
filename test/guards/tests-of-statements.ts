const HELD = 'test/store/guards-held.test.ts';
const CLAIMS = 'test/store/guards-claims.test.ts';
const PLANS = 'test/store/guards-plans.test.ts';
const DAYS = 'test/store/days.test.ts';
const METHODS = 'test/store/methods.test.ts';
const RECORD_STEP = 'test/store/record-step.test.ts';
const HALF_FINISHED = 'test/store/half-finished.test.ts';
const RETENTION = 'test/store/guards-retention.test.ts';
const LOOK_UPS = ['test/store/dates.test.ts', 'test/store/look-up-status.test.ts', 'test/store/completion.test.ts'];
const OPERATOR_GUARDS = 'test/store/operator-guards.test.ts';
const OPERATOR_CHANGES = [OPERATOR_GUARDS, 'test/store/operator-changes.test.ts'];
/** Which of the retention tests see what. */
const retention = (...names: readonly string[]): readonly string[] =>
  names.map((name) => `test/store/retention-${name}.test.ts`);

/** The test files that should see a condition of a statement gone, those first that are likeliest to. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  INSERT_CLAIM: [CLAIMS, PLANS],
  INSERT_CLAIMS: [CLAIMS, PLANS],
  TAKE_OVER_IF_EXPIRED: [HELD, PLANS, CLAIMS],
  COMPLETE_IF_HELD: [HELD, PLANS, CLAIMS],
  RENEW_IF_HELD: [HELD, PLANS, CLAIMS],
  SELECT_STILL_HELD: [HELD, PLANS],
  END_LEASES_IF_HELD: [HELD, PLANS],
  RELEASE_IF_HELD: [HELD, HALF_FINISHED, PLANS, CLAIMS],
  SELECT_HALF_FINISHED: [HALF_FINISHED],
  COUNT_STRANDED: [HALF_FINISHED],
  PUBLISH_IF_HELD: [HELD, PLANS, CLAIMS],
  TAKE_TOKEN_AWAY_IF_HELD: [HELD, PLANS, CLAIMS],
  CONFIRM_COMPLETION: [HELD, PLANS, CLAIMS],
  SELECT_STILL_RUNNING: [HELD, PLANS],
  RECORD_STEP_IF_HELD: [HELD, RECORD_STEP, PLANS, CLAIMS],
  RECORD_STEP_IN_TRANSACTION_IF_HELD: [HELD, PLANS, CLAIMS],
  PARK_IF_EXHAUSTED: [HELD, PLANS, CLAIMS],
  LOOK_UP: [PLANS, ...LOOK_UPS],
  LOOK_UP_STATUS: [PLANS, ...LOOK_UPS],

  FIND_BY_KEY: [OPERATOR_GUARDS, 'test/store/operator.test.ts'],
  SELECT_PARKED: ['test/store/operator-parked.test.ts'],
  FREE_IF_PARKED: OPERATOR_CHANGES,
  TAKE_CLAIM_AWAY: OPERATOR_CHANGES,
  EXPIRE_IF_COMPLETED: OPERATOR_CHANGES,
  REFUSE_IF_UNFINISHED: OPERATOR_CHANGES,

  INSERT_METHOD: [METHODS, CLAIMS],
  LENGTHEN_METHOD: [METHODS, CLAIMS],

  CHECK_DATABASE: ['test/store/check-database.test.ts'],
  CREATE_DAY_LOCK: [CLAIMS],
  SELECT_DAYS_TO_CREATE: [DAYS],
  ELECT: retention('election'),
  RENEW_IF_ELECTED: retention('election'),
  RESIGN_IF_ELECTED: retention('election'),
  MOVE_DROPPED_THROUGH: retention('drop', 'races'),
  SELECT_DAYS_TO_DROP: [RETENTION, ...retention('drop', 'races')],
  selectIsRunning: retention('drop', 'races'),
  keepUnfinished: retention('drop', 'races'),
  PURGE_UNDATED: [...retention('purge', 'plans'), CLAIMS, PLANS],
  COUNT_PARTITIONS: retention('observe'),
  SELECT_SAMPLE_PERCENT: [RETENTION, ...retention('observe')],
};

/** Undefined where nobody has said: a statement that is new must be given tests. The likeliest to see it comes first. */
export function testsOfStatement(statement: string, condition: string): readonly string[] | undefined {
  const likeliest = /bucket|LIMIT/.test(condition) ? PLANS : condition.startsWith('set_config') ? CLAIMS : undefined;
  const tests = TESTS[statement];
  if (likeliest === undefined || tests?.includes(likeliest) !== true) return tests;
  return [likeliest, ...tests.filter((test) => test !== likeliest)];
}
