import { isOneEditApart } from '../misspelled-settings';
import { OperatorError } from '../operator-error';
import { version } from '../version';
import { type Command, EXIT, type ExitCode, UsageError } from './command';

/** What a command line is run with. */
export interface RunOptions {
  readonly commands: readonly Command[];
  /** The words after the name of the program. */
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Writes one line to standard output. */
  readonly print: (line: string) => void;
  /** Writes one line to standard error. */
  readonly printError: (line: string) => void;
}

/** Runs the command that the words name, and says how it ended. Never rejects: what went wrong is printed. */
export async function runCommand({ commands, args, environment, print, printError }: RunOptions): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === 'help' || name === '--help' || name === '-h') {
    print(help(commands));
    return EXIT.ok;
  }
  if (name === 'version' || name === '--version' || name === '-v') {
    print(version);
    return EXIT.ok;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    // What is at fault comes last: the usage may be longer than a screen.
    printError(help(commands));
    printError(name === undefined ? 'which command?' : unknownCommand(name, commands));
    return EXIT.usage;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    print(commandHelp(command));
    return EXIT.ok;
  }
  try {
    return await command.run({ args: rest, environment, print, printError });
  } catch (error) {
    const isUsage = isUsageError(error);
    if (isUsage && !(error instanceof UsageError && !error.withUsage)) printError(commandHelp(command));
    printError(messageOf(error));
    return isUsage ? EXIT.usage : EXIT.refused;
  }
}

function unknownCommand(name: string, commands: readonly Command[]): string {
  const meant = commands.find((command) => isMeantBy(name, command.name));
  return `unknown command "${name}"${meant === undefined ? '' : `; was ${meant.name} meant?`}`;
}

/** One letter is wrong, or only the beginning is there. */
function isMeantBy(written: string, name: string): boolean {
  return isOneEditApart(written, name) || (written.length >= 3 && name.startsWith(written));
}

const DATABASE =
  'The database is that of DATABASE_URL, else the embedded one in DATA_DIRECTORY, default .data of the current folder.';

function help(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => [usageOf(command), `      ${command.summary}`]);
  const more = 'grpc-idempotency <command> --help tells more of one, with an example; --version, which this is.';
  return ['usage:', ...lines, more, DATABASE].join('\n');
}

function commandHelp(command: Command): string {
  const { summary, details = [], example } = command;
  return [
    ...['usage:', usageOf(command)],
    ...[summary, ...details].map((line) => `      ${line}`),
    ...['example:', `  npx ${example}`, DATABASE],
  ].join('\n');
}

function usageOf({ name, usage }: Command): string {
  return `  grpc-idempotency ${name} ${usage}`.trimEnd();
}

function isUsageError(error: unknown): boolean {
  return error instanceof UsageError || codeOf(error)?.startsWith('ERR_PARSE_ARGS_') === true;
}

/** What whoever ran the command can repair is one message; a broken promise of ours comes with its stack. */
function messageOf(error: unknown): string {
  const expected = error instanceof OperatorError || error instanceof UsageError;
  // Errors of the driver and of the system have a code; of a name with several addresses it is all they have.
  const code = codeOf(error);
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  // Prisma puts its own call above what the database said.
  if (code !== undefined && PRISMA_CODE.test(code)) return message.trim().split('\n').at(-1) ?? message;
  if (expected || code !== undefined) return message === '' ? (code ?? '') : message;
  return stack ?? message;
}

const PRISMA_CODE = /^P\d{4}$/;

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
