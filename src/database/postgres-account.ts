import { stat } from 'node:fs/promises';
import { runTool } from './run-tool';
import { OperatorError } from '../operator-error';

/** Postgres refuses to run as root, so root runs it as this operating system user. */
const USER_NAME = 'postgres';

/** An operating system user that runs Postgres in our place. */
export interface PostgresAccount {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The operating system user that runs Postgres: undefined, meaning ourselves, but for root. Root runs a database that
 * is there as its owner, who may be an ordinary user, and a new one as the user `postgres`, created as a system user
 * where it is missing.
 *
 * @param existing where the database lies, or would lie
 * @throws Error when that user is missing and can't be created
 */
export async function accountForPostgres(existing: string): Promise<PostgresAccount | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const owner = await stat(existing).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const known = await lookUp();
  if (known !== undefined) return known;
  const args = ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', USER_NAME];
  const created = await runTool('useradd', args, { account: undefined }).catch((error: unknown) => ({
    output: String(error),
  }));
  // Looked up whatever useradd says: another process may have been quicker.
  const account = await lookUp();
  if (account !== undefined) return account;
  throw new OperatorError(
    `Postgres does not run as root, and the user "${USER_NAME}" could not be created (${created.output}). ` +
      'Create that user, start as another user than root, or set DATABASE_URL.',
  );
}

async function lookUp(): Promise<PostgresAccount | undefined> {
  const [uid, gid] = await Promise.all([readId('-u'), readId('-g')]);
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}

async function readId(flag: '-u' | '-g'): Promise<number | undefined> {
  const { code, output } = await runTool('id', [flag, USER_NAME], { account: undefined });
  return code === 0 ? Number.parseInt(output, 10) : undefined;
}

/**
 * Whether an account may enter a directory, or run a program. The account itself is made to try: modes, owners, groups,
 * access lists and mounts all have a say, and the kernel knows them all.
 */
export async function canReach(account: PostgresAccount, path: string): Promise<boolean> {
  const { code } = await runTool('/bin/sh', ['-c', 'test -x "$0"', path], { account });
  return code === 0;
}
