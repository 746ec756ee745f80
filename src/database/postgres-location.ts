import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canReach, type PostgresAccount } from './postgres-account';
import { uniqueSuffix } from './unique-suffix';

/** For root only, whose files may lie where the account that runs Postgres can't go. Writable by root alone. */
export const FALLBACK_DIRECTORY = '/var/lib/grpc-idempotency';

/** Where the files lie in the data directory, and wherever that is possible. */
export function locationInPlace(dataDirectory: string): string {
  return join(dataDirectory, 'postgres');
}

/** Holds the path of the database's files, in the data directory, where they are not in it. */
const POINTER = 'postgres-location';

/** Where the files of the database lie. */
export interface PostgresLocation {
  readonly directory: string;
  /** Whether that is inside the data directory. */
  readonly inPlace: boolean;
}

/** For whom to find a place. */
export interface LocatePostgresOptions {
  /** An existing directory; its real path. */
  readonly dataDirectory: string;
  /** Who runs Postgres; undefined: ourselves. */
  readonly account: PostgresAccount | undefined;
  /** Gets the files when the account can't enter the data directory. Default: `FALLBACK_DIRECTORY`. */
  readonly fallbackDirectory?: string;
}

/**
 * `<dataDirectory>/postgres` wherever the account can enter the data directory. Otherwise (a clone below /root or in a
 * directory made by mktemp) a directory of its own below the fallback, which the data directory points to from then on:
 * whoever deletes the data directory starts with an empty database, exactly as in place.
 */
export async function locatePostgres(options: LocatePostgresOptions): Promise<PostgresLocation> {
  const pointer = join(options.dataDirectory, POINTER);
  const pointed = await readFile(pointer, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (pointed !== undefined) return { directory: pointed.trim(), inPlace: false };
  if (options.account === undefined || (await canReach(options.account, options.dataDirectory))) {
    return { directory: locationInPlace(options.dataDirectory), inPlace: true };
  }
  const fallback = options.fallbackDirectory ?? FALLBACK_DIRECTORY;
  await mkdir(fallback, { recursive: true });
  const hash = createHash('sha256').update(options.dataDirectory);
  const directory = join(fallback, `${hash.digest('hex').slice(0, 16)}-${uniqueSuffix()}`);
  // Written before anything lies there, and whole or not at all: a database must not be lost sight of.
  const unfinished = `${pointer}.new-${uniqueSuffix()}`;
  await writeFile(unfinished, `${directory}\n`);
  await rename(unfinished, pointer);
  return { directory, inPlace: false };
}
