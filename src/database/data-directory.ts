import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { OperatorError } from '../operator-error';

/** The data directory can't be made, or what has its name is none. */
export class DataDirectoryUnusable extends OperatorError {
  override readonly name = 'DataDirectoryUnusable';

  /**
   * @param dataDirectory absolute path
   * @param reason what the system said, or which part of the path is no directory
   */
  constructor(dataDirectory: string, reason: string, options?: ErrorOptions) {
    super(
      `The data directory ${dataDirectory} can't be made: ${reason}. Set DATA_DIRECTORY to a directory in one that you ` +
        'can write to.',
      options,
    );
  }
}

/**
 * Makes a data directory, and those above it, where they are missing. One by one: `mkdir` with `recursive` does not
 * return on Node 20 where the system answers ENOENT below a directory that is there, as Linux does below /proc.
 *
 * @throws DataDirectoryUnusable when a part of its path is no directory, or can't be made
 */
export async function makeDataDirectory(dataDirectory: string): Promise<void> {
  const directory = resolve(dataDirectory);
  try {
    for (const missing of await missingDirectories(directory)) await makeDirectory(missing);
  } catch (cause) {
    throw new DataDirectoryUnusable(directory, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** The part of a path that is missing, the highest directory first. */
async function missingDirectories(directory: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let path = directory; !(await isDirectory(path)); path = dirname(path)) missing.unshift(path);
  return missing;
}

/**
 * False where there is nothing.
 *
 * @throws Error where there is something else, or nobody may look
 */
async function isDirectory(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
  throw new Error(`${path} is no directory`);
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path).catch(async (error: NodeJS.ErrnoException) => {
    // Another start may have been quicker; a link to nowhere is no directory.
    if (error.code !== 'EEXIST' || !(await isDirectory(path))) throw error;
  });
}
