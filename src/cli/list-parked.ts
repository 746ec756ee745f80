import { findParked, type SeenRecord } from '../idempotency/index';
import { type CommandContext, EXIT, type ExitCode } from './command';
import { MAYBE_MORE } from './read-limit';
import { withRecords } from './record-command';
import { oneLine, recordJson, spanOf, subjectOf } from './record-text';
import { pathEnd } from './record-words';

/** What is listed, and how. */
export interface ParkedWords {
  /** As on the wire, or its last part alone; undefined for all. */
  readonly method: string | undefined;
  readonly json: boolean;
  /** Most lines. */
  readonly limit: number;
}

/** Shows what is parked now, a line each, the oldest first. */
export async function listParked(
  { environment, print, printError }: CommandContext,
  { method, json, limit }: ParkedWords,
): Promise<ExitCode> {
  const announce = json ? undefined : printError;
  // Claims and look-ups are given up after seconds: too early for reading all records.
  return withRecords({ environment, announce }, async (_, { business }) => {
    const end = method === undefined ? undefined : pathEnd(method);
    const records = await findParked(business, { pathEnd: end, limit });
    if (json) print(JSON.stringify({ records: records.map(recordJson) }));
    else for (const line of linesOf(records, { method, limit })) print(line);
    return EXIT.ok;
  });
}

function linesOf(records: readonly SeenRecord[], { method, limit }: Omit<ParkedWords, 'json'>): readonly string[] {
  if (records.length === 0) return [oneLine(`nothing is parked${method === undefined ? '' : ` of method ${method}`}`)];
  return [...records.map(lineOf), ...(records.length === limit ? [MAYBE_MORE] : [])];
}

function lineOf(record: SeenRecord): string {
  const { requestId, since, ageMs, attempt, recoveryPoint, resource, keptAt } = record;
  const parts = [
    ...[requestId, subjectOf(record), `since ${since.toISOString()}, ${spanOf(ageMs)} ago`, `attempt ${attempt}`],
    ...[`at ${recoveryPoint ?? '-'}`, resource ?? '-', keptAt === undefined ? '' : 'its day was dropped'],
  ];
  return oneLine(parts.filter((part) => part !== '').join('  '));
}
