/** The protos and what is to be served don't go together; nothing may be served. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';

  /** @param faults one line each: the method, the setting, what was expected */
  constructor(
    summary: string,
    readonly faults: readonly string[],
  ) {
    super([summary, ...faults].join('\n  '));
  }
}
