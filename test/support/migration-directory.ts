import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './run-program';

/** A copy of this package's migrations that a test may add to. */
export interface MigrationDirectory {
  readonly path: string;
  /** Adds a migration, or writes another text into one that is there. */
  write(name: string, sql: string): Promise<void>;
  /** Removes the copy. */
  drop(): Promise<void>;
}

/** Copies the migrations of this package. */
export async function copyMigrations(): Promise<MigrationDirectory> {
  const path = await mkdtemp(join(tmpdir(), 'grpc-idempotency-migrations-'));
  await cp(join(ROOT, 'prisma', 'migrations'), path, { recursive: true });
  return {
    path,
    write: async (name, sql) => {
      await mkdir(join(path, name), { recursive: true });
      await writeFile(join(path, name, 'migration.sql'), sql);
    },
    drop: () => rm(path, { recursive: true }),
  };
}

/** The statement of a migration that says which is the oldest version that can run on it. */
export function statesOldestCode(name: string, version: string): string {
  return `INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES ('${name}', '${version}');`;
}
