import type { MethodPolicy } from '../policy';
import { again } from './again';
import type { SqlClient } from './database';
import { INSERT_METHOD, LENGTHEN_METHOD, SELECT_METHODS } from './sql/methods';

/** The small ids that records use in place of method paths. */
export type MethodIds = ReadonlyMap<string, number>;

/**
 * Registers the methods that take keys and returns the ids of all methods the database knows. Safe to run in several
 * processes at once. A promise once made to keep records is only ever lengthened.
 */
export async function registerMethods(client: SqlClient, policies: readonly MethodPolicy[]): Promise<MethodIds> {
  for (const { path, retentionMs, maxKeyAgeMs } of policies) {
    await again(() => client.$queryRawUnsafe(INSERT_METHOD, path, retentionMs, maxKeyAgeMs));
    await again(() => client.$queryRawUnsafe(LENGTHEN_METHOD, path, retentionMs, maxKeyAgeMs));
  }
  const rows = await client.$queryRawUnsafe<{ id: number; path: string }[]>(SELECT_METHODS);
  return new Map(rows.map(({ id, path }) => [path, id]));
}
