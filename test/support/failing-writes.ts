import type { TestDatabase } from './postgres';

/** Which writes Postgres is made to fail. */
export interface FailingWrites {
  readonly table: 'idempotency_record' | 'payments';
  readonly write: 'INSERT' | 'UPDATE';
  readonly sqlState: string;
  /** How many fail before the others succeed. Default: all. */
  readonly times?: number;
  /** Fail at COMMIT instead of at the statement. Default false. */
  readonly atCommit?: boolean;
}

/** Writes that Postgres was made to fail. */
export interface MadeToFail {
  /** How many were tried so far, the failed ones included. */
  tried(): Promise<number>;
  /** Lets all writes succeed again. */
  remove(): Promise<void>;
}

/** Makes Postgres itself refuse writes; the count lives in a sequence, which no rollback takes back. */
export async function failWrites(database: TestDatabase, options: FailingWrites): Promise<MadeToFail> {
  const { table, write, sqlState, times = 1_000_000, atCommit = false } = options;
  const [constraint, deferred] = atCommit ? ['CONSTRAINT', 'DEFERRABLE INITIALLY DEFERRED'] : ['', ''];
  await database.rows(`
    CREATE SEQUENCE writes_tried MINVALUE 0 START 0;
    SELECT nextval('writes_tried');
    CREATE FUNCTION fail_write() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('writes_tried') <= ${times} THEN
        RAISE EXCEPTION 'made to fail on host db-7.internal' USING ERRCODE = '${sqlState}';
      END IF;
      RETURN NULL;
    END $$;
    CREATE ${constraint} TRIGGER fail_write AFTER ${write} ON ${table} ${deferred}
      FOR EACH ROW EXECUTE FUNCTION fail_write();`);
  return {
    tried: async () => {
      const [row] = await database.rows<{ tried: string }>('SELECT last_value AS tried FROM writes_tried');
      return Number(row?.tried);
    },
    remove: async () => {
      await database.rows('DROP FUNCTION fail_write CASCADE; DROP SEQUENCE writes_tried');
    },
  };
}
