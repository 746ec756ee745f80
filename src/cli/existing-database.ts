import { realpath, stat } from 'node:fs/promises';
import { locatePostgres } from '../database/postgres-location';

/** Whether an embedded database lies in a data directory, or where that points to. Nothing is made, and nothing started. */
export async function hasDatabase(dataDirectory: string): Promise<boolean> {
  try {
    const { directory } = await locatePostgres({ dataDirectory: await realpath(dataDirectory), account: undefined });
    return (await stat(directory)).isDirectory();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}
