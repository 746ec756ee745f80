import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { JEST_CONFIG } from './copied-tree';

/** How a run of test files ended. */
export type TestRunEnd =
  | { readonly kind: 'green' }
  /** The first test that failed, and the first line of what it said. */
  | { readonly kind: 'red'; readonly file: string; readonly test: string; readonly message: string }
  /** A file could not be loaded, or jest not run: that says nothing about a check. */
  | { readonly kind: 'broken'; readonly message: string };

/** What is read of jest's report. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** A removal may make tests wait for ever; milliseconds. */
const TEST_TIMEOUT_MS = 12_000;
const FILE_TIMEOUT_MS = 120_000;

/** Runs test files of a copied package, against a cluster that is there already. */
export async function runTests(
  directory: string,
  files: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<TestRunEnd> {
  const reportFile = join(directory, 'guards-report.json');
  const args = [
    ...['--config', JEST_CONFIG],
    '--runInBand',
    '--bail',
    '--json',
    '--outputFile',
    reportFile,
    '--testTimeout',
    String(TEST_TIMEOUT_MS),
  ];
  await rm(reportFile, { force: true });
  const child = spawn(process.execPath, [join(directory, 'node_modules/jest/bin/jest.js'), ...args, ...files], {
    cwd: directory,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own, so that what the tests started ends with it.
    detached: true,
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    endGroup(child.pid);
  }, FILE_TIMEOUT_MS * files.length);
  const stop = (): void => endGroup(child.pid);
  process.once('exit', stop);
  await once(child, 'close');
  clearTimeout(timer);
  process.off('exit', stop);
  if (late) return { kind: 'red', file: files.join(' '), test: 'the run', message: 'did not end in time' };
  return readReport(directory, reportFile, output);
}

async function readReport(directory: string, reportFile: string, output: string): Promise<TestRunEnd> {
  const text = await readFile(reportFile, 'utf8').catch(() => undefined);
  if (text === undefined) return { kind: 'broken', message: output.slice(-2_000) };
  for (const { name, message, assertionResults } of (JSON.parse(text) as Report).testResults) {
    const file = name.replace(`${directory}/`, '');
    const failed = assertionResults.find(({ status }) => status === 'failed');
    if (failed !== undefined) {
      return { kind: 'red', file, test: failed.fullName, message: firstLine(failed.failureMessages[0] ?? '') };
    }
    if (assertionResults.length === 0) return { kind: 'broken', message: `${file}: ${plain(message).slice(0, 1_000)}` };
  }
  return { kind: 'green' };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function firstLine(message: string): string {
  const lines = plain(message).split('\n');
  return lines.map((line) => line.trim()).find((line) => line !== '') ?? '';
}

function plain(text: string): string {
  // eslint-disable-next-line no-control-regex -- the colours of jest's messages begin with the control character ESC
  return text.replaceAll(/\u001b\[[0-9;]*m/g, '');
}
