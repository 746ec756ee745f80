import { spawn } from 'node:child_process';
import type { PostgresAccount } from './postgres-account';

/** How to run a program of Postgres. */
export interface RunToolOptions {
  /** The operating system user; undefined: the one that runs us. */
  readonly account: PostgresAccount | undefined;
  /** In a session of its own, out of reach of the Ctrl-C that a terminal sends to all programs in the foreground. */
  readonly detached?: boolean;
}

/** How a program ended. */
export interface ToolResult {
  /** Exit code; undefined when a signal ended it. */
  readonly code: number | undefined;
  /** Everything it printed. */
  readonly output: string;
}

/**
 * Runs a program to its end, without a shell and with nothing of our environment but PATH: variables such as PGDATA or
 * PGPORT would change what Postgres' programs do, and a foreign locale what they print.
 *
 * @throws Error when the program can't be started at all
 */
export function runTool(file: string, args: readonly string[], options: RunToolOptions): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      ...options.account,
      cwd: '/',
      detached: options.detached ?? false,
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({ code: code ?? undefined, output: output.trim() });
    });
  });
}
