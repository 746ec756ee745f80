/** How a command ended, as the exit code of the process. */
export const EXIT = {
  /** Done. */
  ok: 0,
  /** Refused, or it failed; what was printed says why. */
  refused: 1,
  /** The words of the command line were not understood. */
  usage: 2,
} as const;

/** One of `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command line was not understood. The message says which part. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** Whether the usage of the command is shown too; false where the message is all that is needed. */
  readonly withUsage: boolean;

  constructor(message: string, { withUsage = true }: { readonly withUsage?: boolean } = {}) {
    super(message);
    this.withUsage = withUsage;
  }
}

/** What a command runs with. */
export interface CommandContext {
  /** What followed the name of the command. */
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Writes one line to standard output. */
  readonly print: (line: string) => void;
  /** Writes one line to standard error: what is logged beside the result. */
  readonly printError: (line: string) => void;
}

/** A command of `npx grpc-idempotency`. */
export interface Command {
  readonly name: string;
  /** What may follow the name, as it is shown in the help; empty for nothing. */
  readonly usage: string;
  /** One short line for the list of all commands. */
  readonly summary: string;
  /** What else there is to know, a line each; shown with the command alone. */
  readonly details?: readonly string[];
  /** A whole command line that somebody would type, without `npx`. */
  readonly example: string;
  /**
   * @throws UsageError and errors of `parseArgs` when the arguments are not understood
   * @throws ConfigError, MigrationRefused and other errors that are meant to be read, as the command's own parts do
   */
  readonly run: (context: CommandContext) => Promise<ExitCode>;
}
