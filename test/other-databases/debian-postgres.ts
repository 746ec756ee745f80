import { access, chown, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { accountForPostgres } from '../../src/database/postgres-account';
import type { PostgresCluster } from '../../src/database/postgres-cluster';
import { startServer, stopServer } from '../../src/database/postgres-server';
import { runTool } from '../../src/database/run-tool';
import { makeTemporaryDirectory } from '../support/postgres';
import type { RunningDatabase } from './variants';

const PACKAGE = 'postgresql-15';
const PROGRAMS = '/usr/lib/postgresql/15/bin';

/**
 * Starts Debian's Postgres 15, of which only the programs are used, on files that go with it. Everybody on this machine may
 * connect while it runs.
 *
 * @param install whether the package may be installed where it is missing and can be had
 * @returns why not, where it can't be started here
 */
export async function startDebianPostgres(
  settings: Readonly<Record<string, string>>,
  install: boolean,
): Promise<RunningDatabase | { readonly missing: string }> {
  if (!(await isThere()) && !(install && (await installPackage()))) {
    return { missing: `${PACKAGE} is not installed${install ? ' and not to be had' : '; --install installs it'}` };
  }
  const directory = await makeTemporaryDirectory();
  const account = await accountForPostgres(directory);
  if (account !== undefined) await chown(directory, account.uid, account.gid);
  const binaries = { initdb: join(PROGRAMS, 'initdb'), pgCtl: join(PROGRAMS, 'pg_ctl') };
  const cluster: PostgresCluster = { account, directory, binaries };
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    const args = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
    const { code, output } = await runTool(
      binaries.initdb,
      [`--pgdata=${join(directory, 'cluster')}`, ...args],
      cluster,
    );
    if (code !== 0) throw new Error(`initdb failed: ${output}`);
    const onLoopback = { listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' };
    const port = await startServer(cluster, { settings: { ...onLoopback, ...settings } });
    return {
      connectionString: `postgresql://postgres@127.0.0.1:${String(port)}/postgres`,
      stop: async () => {
        await stopServer(cluster, 'immediate');
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

function isThere(): Promise<boolean> {
  return access(join(PROGRAMS, 'initdb')).then(
    () => true,
    () => false,
  );
}

/** Only a Debian that we may change, and whose sources have it. Its own cluster is stopped: the package starts one. */
async function installPackage(): Promise<boolean> {
  if (process.geteuid?.() !== 0) return false;
  const apt = (...args: readonly string[]) =>
    runTool('apt-get', ['--yes', '--no-install-recommends', ...args], { account: undefined }).catch(() => undefined);
  if ((await apt('--simulate', 'install', PACKAGE))?.code !== 0) return false;
  await apt('install', PACKAGE);
  await runTool('pg_ctlcluster', ['15', 'main', 'stop'], { account: undefined }).catch(() => undefined);
  return isThere();
}
