import { Client } from 'pg';
import { attachDay, createDay } from '../../src/idempotency/store/sql/days';
import type { Guard } from './guard';

/**
 * Says which statements are none any more without their check: a test that fails on one has not seen the check, only the
 * error. They are prepared, not run.
 *
 * @param connectionString of a migrated database
 */
export async function brokenStatements(connectionString: string, guards: readonly Guard[]): Promise<readonly string[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    await client.query(createDay('2001-02-03'));
    await client.query(attachDay('2001-02-03'));
    const faults: string[] = [];
    for (const { name, statement } of guards) {
      if (statement === undefined) continue;
      try {
        await client.query(`PREPARE guarded AS ${statement}`);
        await client.query('DEALLOCATE guarded');
      } catch (error) {
        faults.push(`${name}: ${String(error)}`);
      }
    }
    return faults;
  } finally {
    await client.end();
  }
}
