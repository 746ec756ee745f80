import { readFile, rename, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { clusterData, type PostgresCluster } from './postgres-cluster';
import { runTool } from './run-tool';
import { OperatorError } from '../operator-error';

/** How long a start or a stop may take, seconds: recovery after a crash replays the log first. */
const PATIENCE_S = 60;

/** A port that is free now can be taken by the time Postgres binds it; then another one is tried. */
const START_ATTEMPTS = 3;

/** How a server is started. */
export interface StartServerOptions {
  /** Fixed port on 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** Postgres settings for this run. Values are plain words and numbers. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** `fast` cuts the connections, rolls their transactions back and writes everything out; `immediate` is a crash. */
export type StopMode = 'fast' | 'immediate';

/**
 * Starts the server and waits until it answers. It runs in a session of its own: it outlives the Ctrl-C that a terminal
 * sends to us, so that our running calls can still commit.
 *
 * @returns the port on 127.0.0.1
 * @throws Error with the end of the server's log, when it does not start
 */
export async function startServer(cluster: PostgresCluster, options: StartServerOptions = {}): Promise<number> {
  const log = serverLog(cluster);
  await rename(log, `${log}.previous`).catch(() => undefined);
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    const settings = Object.entries(options.settings ?? {}).map(([name, value]) => `-c ${name}=${value}`);
    const { code, output } = await pgCtl(cluster, [
      'start',
      `--log=${log}`,
      `--options=${['-p', String(port), ...settings].join(' ')}`,
    ]);
    if (code === 0) return port;
    if (attempt >= START_ATTEMPTS) {
      const tail = (await readFile(log, 'utf8').catch(() => '')).slice(-1_000);
      throw new OperatorError(`The database in ${cluster.directory} did not start: ${output}\n${tail}`.trim());
    }
  }
}

/** Where the server of a cluster writes its log; that of the run before is beside it. */
export function serverLog({ directory }: Pick<PostgresCluster, 'directory'>): string {
  return join(directory, 'log');
}

/** Stops the server and waits until it is gone. Nothing to do where none runs. */
export async function stopServer(cluster: PostgresCluster, mode: StopMode = 'fast'): Promise<void> {
  if ((await serverPid(cluster)) === undefined) return;
  const { code, output } = await pgCtl(cluster, ['stop', `--mode=${mode}`]);
  if (code !== 0 && (await serverPid(cluster)) !== undefined) {
    throw new OperatorError(`The database in ${cluster.directory} did not stop: ${output}`);
  }
}

/**
 * The process of the server that runs on this cluster, whoever started it; undefined when there is none.
 *
 * Postgres notes its process id in a file that a crash or a power cut leaves behind, and the number may have gone to
 * another program since, which must neither be signalled nor keep us from starting. So the process is looked at, and a
 * file that names a stranger is removed.
 */
export async function serverPid(cluster: PostgresCluster): Promise<number | undefined> {
  const data = clusterData(cluster);
  const pidFile = join(data, 'postmaster.pid');
  const noted = Number.parseInt(await readFile(pidFile, 'utf8').catch(emptyWhereGone), 10);
  if (Number.isNaN(noted)) return undefined;
  if ((await commandLine(noted)).includes(data)) return noted;
  await rm(pidFile, { force: true });
  return undefined;
}

/** What can't be read for another reason than that it is gone may be a server that lives. */
function emptyWhereGone(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT' || error.code === 'ESRCH') return '';
  throw error;
}

/** The words a process was started with; empty when there is no such process. */
async function commandLine(pid: number): Promise<string> {
  if (process.platform === 'linux') return readFile(`/proc/${String(pid)}/cmdline`, 'utf8').catch(emptyWhereGone);
  return (await runTool('ps', ['-o', 'args=', '-p', String(pid)], { account: undefined })).output;
}

function pgCtl(cluster: PostgresCluster, args: readonly string[]) {
  const { account, binaries } = cluster;
  const common = [`--pgdata=${clusterData(cluster)}`, '--wait', `--timeout=${String(PATIENCE_S)}`];
  return runTool(binaries.pgCtl, [...args, ...common], { account, detached: true });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
