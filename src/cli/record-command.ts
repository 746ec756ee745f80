import { readConfig } from '../config';
import { connect, type Database } from '../database/connect';
import {
  type AbsentKey,
  type ByOperator,
  findRecords,
  type OperatorChange,
  type SeenRecord,
  type SqlClient,
} from '../idempotency/index';
import { createLogger } from '../ops/logger';
import { type CommandContext, EXIT, type ExitCode, UsageError } from './command';
import { type DatabaseUse, withTables } from './command-database';
import { absenceText, oneLine, subjectOf } from './record-text';
import { type ChangeWords, isMeant, type RecordWords } from './record-words';

/** What the words of a command mean. */
export interface MeantRecords {
  readonly records: readonly SeenRecord[];
  /** Of the same key, but of another scope or method. */
  readonly others: readonly SeenRecord[];
  /** What the key is where it has no record at all. */
  readonly absent: AbsentKey | undefined;
}

/**
 * Runs work on the records of the database that the service would use.
 *
 * @param announce as `withTables` takes it
 */
export async function withRecords(
  { environment, announce }: Pick<CommandContext, 'environment'> & Pick<DatabaseUse, 'announce'>,
  work: (client: SqlClient, database: Database) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withTables({ config: readConfig(environment), announce }, async (connectionString) => {
    const database = connect({ connectionString });
    try {
      return await work(database.store, database);
    } finally {
      await database.close();
    }
  });
}

/** @throws UsageError where the key is none */
export async function findMeant(client: SqlClient, words: RecordWords): Promise<MeantRecords> {
  const found = await findRecords(client, words.requestId);
  switch (found.kind) {
    case 'malformed':
      throw new UsageError(`--request-id: ${found.description}`);
    case 'none':
      return { records: [], others: [], absent: found.absent };
    case 'found': {
      const records = found.records.filter((record) => isMeant(words, record));
      return { records, others: found.records.filter((record) => !records.includes(record)), absent: undefined };
    }
  }
}

/** Says that there is nothing, and what that means. */
export function printNothing({ print }: CommandContext, { others, absent }: MeantRecords): ExitCode {
  if (absent !== undefined) print(`nothing found under this key: ${absenceText(absent)}`);
  else {
    const where = others.map(subjectOf).join('; ');
    print(oneLine(`nothing found for that scope and method; the key is recorded for ${where}`));
  }
  return EXIT.refused;
}

/** A change of one record, as a command makes it. */
export interface RecordChange {
  /** For the log: `released`. */
  readonly done: string;
  /** Why it can't be; undefined where it can. */
  readonly refusal: (record: SeenRecord) => string | undefined;
  readonly change: (client: SqlClient, record: SeenRecord, by: ByOperator) => Promise<OperatorChange>;
  /** What follows from it, a line each. */
  readonly consequences: (record: SeenRecord) => readonly string[];
}

/** Finds the one record that is meant, changes it, and says what that means; who did it is logged. */
export async function changeRecord(
  context: CommandContext,
  words: ChangeWords,
  { done, refusal, change, consequences }: RecordChange,
): Promise<ExitCode> {
  const print = (line: string): void => context.print(oneLine(line));
  const refuse = (why: string): ExitCode => {
    print(`refused: ${why}`);
    return EXIT.refused;
  };
  const { environment, printError: announce } = context;
  return withRecords({ environment, announce }, async (client) => {
    const meant = await findMeant(client, words);
    const [record, ...others] = meant.records;
    if (record === undefined) return printNothing(context, meant);
    if (others.length > 0) return refuse(`several are meant: ${meant.records.map(subjectOf).join('; ')}`);
    const why = refusal(record);
    if (why !== undefined) return refuse(why);
    const { operator } = words;
    if (operator === undefined) {
      for (const line of [`would be ${done}: ${subjectOf(record)}`, ...consequences(record)]) print(line);
      return EXIT.ok;
    }
    switch (await change(client, record, { operator })) {
      case 'moved':
        return refuse('it has changed while it was looked at; inspect it, and run this again');
      case 'in_hand':
        return refuse(
          'a transaction has it in hand, such as an attempt that is about to commit; run this again in a moment',
        );
      case 'done':
        log(context, { operator, done, record });
        for (const line of [`${done}: ${subjectOf(record)}, by ${operator}`, ...consequences(record)]) print(line);
        return EXIT.ok;
    }
  });
}

/** One line on standard error, as the service writes them. */
function log(
  { printError }: CommandContext,
  { operator, done, record }: ByOperator & { readonly done: string; readonly record: SeenRecord },
): void {
  const logger = createLogger({ level: 'info', destination: { write: (line) => printError(line.trimEnd()) } });
  const { requestId, path: method, scope, state, attempt, recoveryPoint } = record;
  logger.warn(
    { operator, requestId, method, scope, was: state, attempt, recoveryPoint },
    `a request was ${done} by hand`,
  );
}
