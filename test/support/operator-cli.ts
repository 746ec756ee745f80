import { expireCommand } from '../../src/cli/expire-command';
import { inspectCommand } from '../../src/cli/inspect-command';
import { releaseCommand } from '../../src/cli/release-command';
import { runCommand } from '../../src/cli/run-command';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { type OperatedStore, openOperatedStore } from './operated-store';

/** The method of the records that these tests make. */
export const PATH = '/payments.v1.PaymentsService/CreatePayment';

/** How a command line ended. */
export interface CommandEnd {
  readonly code: number;
  /** Standard output. */
  readonly lines: readonly string[];
  /** Standard error, but for the line that names the database. */
  readonly errors: readonly string[];
  /** The lines that name the database. */
  readonly databases: readonly string[];
}

/** The commands of an operator, on records of their own. */
export interface OperatorCli {
  readonly opened: OperatedStore;
  /** Runs a command line in this process. */
  run(args: readonly string[], environment?: NodeJS.ProcessEnv): Promise<CommandEnd>;
  inspect(requestId: string, ...words: readonly string[]): Promise<CommandEnd>;
  /** Changes the record of a request, by ada. */
  change(command: 'release' | 'expire', request: ClaimRequest, ...words: readonly string[]): Promise<CommandEnd>;
  /** Lets the only record outlive its day. */
  keep(request: ClaimRequest): Promise<void>;
}

/** Opens it. Close `opened` in `afterAll`. */
export async function openOperatorCli(): Promise<OperatorCli> {
  const opened = await openOperatedStore();
  const run: OperatorCli['run'] = async (args, environment = {}) => {
    const lines: string[] = [];
    const errors: string[] = [];
    const databases: string[] = [];
    const code = await runCommand({
      ...{ commands: [inspectCommand, releaseCommand, expireCommand], args },
      environment: { DATABASE_URL: opened.database.connectionString, ...environment },
      print: (line) => void lines.push(line),
      printError: (line) => void (line.startsWith('database: ') ? databases : errors).push(line),
    });
    return { code, lines, errors, databases };
  };
  return {
    ...{ opened, run },
    inspect: (requestId, ...words) => run(['inspect', '--request-id', requestId, ...words]),
    change: (command, { key, scope }, ...words) =>
      run([command, '--request-id', key.text, '--scope', scope, '--method', PATH, '--operator', 'ada', ...words]),
    keep: async (request) => {
      await opened.database.rows('INSERT INTO idempotency_record_kept SELECT now(), r.* FROM idempotency_record AS r');
      await opened.database.rows('DELETE FROM idempotency_record');
      if ((await opened.one(request)).keptAt === undefined) throw new Error('expected it to be kept');
    },
  };
}

/** What is shown of a record under a name. */
export function shown(lines: readonly string[], name: string): string | undefined {
  return lines.find((line) => line.startsWith(`  ${name} `))?.slice(18);
}
