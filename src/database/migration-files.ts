import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One migration as it lies on disk. */
export interface MigrationFile {
  /** Name of its directory; migrations are applied in the order of their names. */
  readonly name: string;
  /** The statements, run together in one transaction. */
  readonly sql: string;
  /** SHA-256 of the file in lower case hex, as Prisma records it. */
  readonly checksum: string;
}

/**
 * Reads `<directory>/<name>/migration.sql`, all of them, in the order of their names (code points, as Prisma sorts).
 *
 * @throws Error when the directory, or the migration.sql of a migration, can't be read
 */
export async function readMigrationFiles(directory: string): Promise<readonly MigrationFile[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(names.sort().map((name) => readMigrationFile(directory, name)));
}

async function readMigrationFile(directory: string, name: string): Promise<MigrationFile> {
  const content = await readFile(join(directory, name, 'migration.sql'));
  return { name, sql: content.toString('utf8'), checksum: createHash('sha256').update(content).digest('hex') };
}
