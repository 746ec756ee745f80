import { UsageError } from './command';

const MOST_LINES = 10_000;
const USUAL_LINES = 50;

/**
 * How many lines of a list are shown.
 *
 * @param text what follows `--limit`; default 50
 * @throws UsageError that names the word
 */
export function readLimit(text: string | undefined): number {
  if (text === undefined) return USUAL_LINES;
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MOST_LINES) throw new UsageError(`--limit: expected a whole number from 1 to ${MOST_LINES}`);
  return limit;
}

/** What is said where a list is as long as it may be. */
export const MAYBE_MORE = 'there may be more; --limit shows them';
