import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** This package. */
export const ROOT = join(__dirname, '..', '..');

/** A program of this package, run as a person would. */
export interface RunningProgram {
  readonly pid: number;
  /** Everything printed so far, on standard output and standard error. */
  output(): string;
  /** Resolves when the output matches; rejects when the program ends without. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Closes the reader of its standard output, as `| head` does. */
  stopReading(): void;
  /** Sends a signal, to this process alone. */
  kill(signal: NodeJS.Signals): void;
  /** Resolves with the exit code, or the signal that ended it, when all of its output has been read. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

/** Runs Node with little more than the given environment: the settings of whoever runs the tests must not count. */
export function runProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  directory = ROOT,
): RunningProgram {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: directory,
    env: { PATH, HOME, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      for (const check of waiting) check();
    });
  }
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return {
    pid: child.pid ?? NaN,
    output: () => output,
    stopReading: () => void child.stdout.destroy(),
    kill: (signal) => void child.kill(signal),
    exited,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const match = pattern.exec(output);
          if (match === null) return;
          waiting.delete(check);
          resolve(match);
        };
        waiting.add(check);
        check();
        void exited.then((how) => reject(new Error(`ended (${how}) before it printed ${String(pattern)}: ${output}`)));
      }),
  };
}
