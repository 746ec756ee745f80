import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { clusterData, type PostgresCluster } from './postgres-cluster';

/** Lines of `postmaster.pid` that tell one run of a server from all others: process id, data directory, start time. */
const NOTED_LINES = 3;

/**
 * Waits for the end of its input, which comes with the end of our process, kill -9 included. Then $1 is the file that
 * must still say $2, and $3 the process, which must still be a server on $4: its number may have gone to another program.
 * SIGINT is Postgres' fast shutdown.
 */
const SCRIPT = `
read -r line
[ "$(head -n ${String(NOTED_LINES)} "$1")" = "$2" ] || exit
if [ -r "/proc/$3/cmdline" ]; then words=$(tr '\\0' ' ' < "/proc/$3/cmdline"); else words=$(ps -o args= -p "$3"); fi
case "$words" in *"$4"*) kill -INT "$3" ;; esac`;

/** Stops a server when our process ends without having done so. */
export interface PostgresWatchdog {
  /** Ends it; the server runs on. Later calls do nothing more. */
  dismiss(): Promise<void>;
}

/**
 * Sees to it that a crash of ours leaves no server running. It is a shell in a session of its own, out of reach of the
 * Ctrl-C of a terminal, and holds the read end of a pipe from us. The server of a later start is another run: that one is
 * never touched.
 *
 * @param cluster whose server runs
 * @throws Error when it does not run, or there is no shell
 */
export async function watchPostgres(cluster: PostgresCluster): Promise<PostgresWatchdog> {
  const data = clusterData(cluster);
  const pidFile = join(data, 'postmaster.pid');
  const noted = (await readFile(pidFile, 'utf8')).split('\n').slice(0, NOTED_LINES);
  const [pid = ''] = noted;
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'postgres-watchdog', pidFile, noted.join('\n'), pid.trim(), data], {
    cwd: '/',
    detached: true,
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await once(shell, 'spawn');
  const ended = once(shell, 'exit');
  // To be watched is no reason for a process to stay.
  shell.unref();
  return {
    dismiss: async () => {
      // What is waited for counts again: otherwise the process could end here, with success and before its clean-up.
      shell.ref();
      // Not by closing the pipe, which is what a crash does.
      if (shell.exitCode === null && shell.kill('SIGKILL')) await ended;
    },
  };
}
