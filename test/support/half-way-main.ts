/** A service under test that pays in steps, and stands still where a test wants to kill it. */
import { Pool } from 'pg';
import { startAttemptService } from './attempt-service';
import type { FromHalfWay, HalfWayOptions } from './half-way-process';
import { payInSteps } from './pay-in-steps';

const { connectionString, stopsAt } = JSON.parse(process.argv[2] ?? '{}') as HalfWayOptions;

async function main(): Promise<void> {
  const pool = new Pool({ connectionString, max: 2 });
  const database = {
    ...{ connectionString, pool },
    rows: async <Row>(sql: string, values: readonly unknown[] = []) =>
      (await pool.query(sql, [...values])).rows as Row[],
    count: () => Promise.resolve(0),
    drop: () => pool.end(),
  };
  const service = await startAttemptService({ database, policy: { resume: true } });
  service.handle({
    createPayment: payInSteps(database, (point) => {
      if (point !== stopsAt) return Promise.resolve();
      tell({ type: 'reached' });
      return new Promise(() => undefined);
    }),
  });
  tell({ type: 'ready', port: service.port });
}

function tell(message: FromHalfWay): void {
  process.send?.(message);
}

// A test that ends takes its processes with it, however it ends.
process.once('disconnect', () => process.exit(1));
main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
