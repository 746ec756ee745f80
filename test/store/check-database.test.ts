import { connect, type Database } from '../../src/database/connect';
import { openPostgresStore, UnusableDatabaseError } from '../../src/idempotency/index';
import { checkDatabase } from '../../src/idempotency/store/check-database';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

describe('a database that can not keep records (design 4.6, 4.12)', () => {
  let database: TestDatabase;
  let connections: Database;
  const open = async (options: { readonly empty?: boolean; readonly settings?: string } = {}) => {
    database = await createTestDatabase({ empty: options.empty ?? false });
    const url = new URL(database.connectionString);
    if (options.settings !== undefined) url.searchParams.set('options', options.settings);
    connections = connect({ connectionString: url.href });
    const { business, store: records } = connections;
    return openPostgresStore({ business, records, policies: [] });
  };
  afterEach(async () => {
    await connections.close();
    await database.drop();
  });

  it('is refused where it has none of the tables, which are named with the command', async () => {
    await expect(open({ empty: true })).rejects.toThrow(
      /^Tables are missing in the database: idempotency_record, idempotency_method, idempotency_retention\. .*npx grpc-idempotency migrate/,
    );
  });

  it('is refused where it is read-only', async () => {
    const opened = open({ settings: '-c default_transaction_read_only=on' });
    await expect(opened).rejects.toThrow(UnusableDatabaseError);
    await expect(opened).rejects.toThrow('read-only (default_transaction_read_only is on): connect to the primary');
  });

  it('is refused where it is too old, and named as a standby where it is one', async () => {
    await open();
    const says = (row: object) => ({ $queryRawUnsafe: <Rows>() => Promise.resolve([row] as Rows) });
    const good = { version: 140_000, readOnly: false, standby: false, missing: [] };
    await expect(checkDatabase(says(good))).resolves.toBeUndefined();
    await expect(checkDatabase(says({ ...good, version: 130_022 }))).rejects.toThrow(
      'Postgres 13 is too old: use version 14',
    );
    await expect(checkDatabase(says({ ...good, readOnly: true, standby: true }))).rejects.toThrow('it is a standby');
  });
});
