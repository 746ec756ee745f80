import type { TestDatabase } from './postgres';
import { until } from './until';

/** Where statements on the records of undated keys are held until a test lets them go. */
export type HoldPoint = 'before a claim' | 'at the commit of a claim' | 'at the commit of a completion';

/** A gate in the database. */
export interface RecordHold {
  /** Resolves when so many statements of the database wait for a lock: the gate's, or one behind it. */
  waiting(count: number): Promise<void>;
  /** Lets everything through, now and later. */
  open(): Promise<void>;
  /** Removes the gate. */
  remove(): Promise<void>;
}

/** Any fixed number: an advisory lock of the test's own database. */
const GATE = 4_711;

const TRIGGERS: Readonly<Record<HoldPoint, string>> = {
  'before a claim': 'CREATE TRIGGER hold BEFORE INSERT ON idempotency_record_undated FOR EACH ROW',
  'at the commit of a claim':
    'CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON idempotency_record_undated ' +
    'DEFERRABLE INITIALLY DEFERRED FOR EACH ROW',
  'at the commit of a completion':
    'CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON idempotency_record_undated ' +
    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.state = 'completed')",
};

/** Closes a gate. A claim waits at it for two seconds at most: that is its patience. */
export async function holdRecords(database: TestDatabase, point: HoldPoint): Promise<RecordHold> {
  await database.rows(`
    CREATE OR REPLACE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); RETURN NEW; END $$`);
  await database.rows(`${TRIGGERS[point]} EXECUTE FUNCTION hold()`);
  const keeper = await database.pool.connect();
  await keeper.query('SELECT pg_advisory_lock($1)', [GATE]);
  let closed = true;
  const open = async (): Promise<void> => {
    if (!closed) return;
    closed = false;
    await keeper.query('SELECT pg_advisory_unlock($1)', [GATE]);
    keeper.release();
  };
  return {
    open,
    waiting: (count) => statementsWaiting(database, count),
    remove: async () => {
      await open();
      await database.rows('DROP TRIGGER hold ON idempotency_record_undated');
    },
  };
}

/** Resolves when so many statements of a database wait for a lock. */
export function statementsWaiting(database: TestDatabase, count: number): Promise<void> {
  return until(`${count} statements wait for a lock`, async () => {
    const waiting = await database.count(
      "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    return waiting === count;
  });
}
