/** Causes can form a ring, and a long chain says no more than its start. */
const MOST_ERRORS = 8;

/**
 * The stacks of an error, of its causes, and of the errors it gathers. Only stacks: other properties of an error, such as
 * a driver's `detail` or `query`, can hold what a caller sent. Of a thrown value that is no error only its type is told.
 */
export function errorStack(error: unknown): string {
  const stacks: string[] = [];
  const rest = [error];
  while (rest.length > 0 && stacks.length < MOST_ERRORS) {
    const next = rest.shift();
    stacks.push(next instanceof Error ? (next.stack ?? String(next)) : `a thrown ${typeof next}`);
    if (next instanceof AggregateError) rest.push(...(next.errors as unknown[]));
    if (next instanceof Error && next.cause !== undefined) rest.push(next.cause);
  }
  return stacks.join('\ncaused by: ');
}
