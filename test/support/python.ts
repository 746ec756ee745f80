import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './run-program';

/** Debian's: whichever comes first in PATH may be another one, without Debian's packages. */
const PYTHON = '/usr/bin/python3';

/** Why there is no gRPC for Python, after an attempt to install it; undefined where there is. */
export function pythonObstacle(): string | undefined {
  const { status, stderr, error } = spawnSync(join(ROOT, 'scripts', 'install-python-grpcio.sh'), {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 240_000,
  });
  if (status === 0) return undefined;
  return error?.message ?? stderr.toString().trim();
}

/** Runs a script of test/python and returns what it printed, read as JSON. Its errors go to the rejection. */
export async function runPython(script: string, ...args: readonly string[]): Promise<unknown> {
  const run = promisify(execFile)(PYTHON, ['-B', join(ROOT, 'test', 'python', script), ...args], { timeout: 60_000 });
  return JSON.parse((await run).stdout);
}
