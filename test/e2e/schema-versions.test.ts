import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { migrate, MigrationRefused, missingMigrations } from '../../src/database/migrate';
import { prepareSchema } from '../../src/database/prepare-schema';
import { copyMigrations, type MigrationDirectory, statesOldestCode } from '../support/migration-directory';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { startTestService } from '../support/service';
import { createStockClient } from '../support/stock-client';

const NEXT = '29990101000000_next';
const LATER = '29990102000000_later';

describe('a schema that is newer than the code', () => {
  let database: TestDatabase;
  let newer: MigrationDirectory;

  beforeEach(async () => {
    database = await createTestDatabase();
    newer = await copyMigrations();
  });

  afterEach(async () => {
    await database.drop();
    await newer.drop();
  });

  const migrateTo = (directory: string) => migrate({ connectionString: database.connectionString, directory });
  const asVersion = (codeVersion: string) => ({ connectionString: database.connectionString, codeVersion });

  it('is migrated to while a process of the older version serves, and one more of that version starts', async () => {
    const { connectionString } = database;
    const pay = async ({ grpcPort }: ServiceProcess) => {
      const client = createStockClient(grpcPort);
      const answer = await client.call({
        ...{ method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() },
      });
      client.close();
      return answer.code;
    };
    const before = await startServiceProcess({ connectionString });
    expect(await pay(before)).toBe(status.OK);

    await newer.write(NEXT, `ALTER TABLE payments ADD COLUMN note text; ${statesOldestCode(NEXT, '0.1.0')}`);
    expect(await migrateTo(newer.path)).toEqual([NEXT]);

    expect(await pay(before)).toBe(status.OK);
    const after = await startServiceProcess({ connectionString });
    expect(await pay(after)).toBe(status.OK);
    expect(await database.count('payments')).toBe(3);
    for (const service of [before, after]) {
      service.kill('SIGTERM');
      expect(await service.exited).toBe(0);
    }
  });

  it('is accepted from the version on that each of its migrations states, and refuses older ones by name', async () => {
    await newer.write(NEXT, statesOldestCode(NEXT, '0.9.0'));
    await newer.write(LATER, statesOldestCode(LATER, '0.10.0'));
    await migrateTo(newer.path);
    const excludes = (name: string, own: string, oldest: string) =>
      `The migration "${name}" of this database excludes this version (${own}): deploy at least ${oldest}.`;

    for (const version of ['0.10.0', '0.10.1-rc.1', '1.0.0']) {
      expect(await migrate(asVersion(version))).toEqual([]);
      expect(await missingMigrations(asVersion(version))).toEqual([]);
    }
    const middle = new MigrationRefused(excludes(LATER, '0.9.9', '0.10.0'));
    await expect(migrate(asVersion('0.9.9'))).rejects.toThrow(middle);
    const old = new MigrationRefused(`${excludes(NEXT, '0.1.0', '0.9.0')}\n${excludes(LATER, '0.1.0', '0.10.0')}`);
    await expect(migrate(asVersion('0.1.0'))).rejects.toThrow(old);
    await expect(missingMigrations(asVersion('0.1.0'))).rejects.toThrow(old);
  });

  it('is refused where a migration does not say who can run on it', async () => {
    await newer.write(NEXT, 'CREATE TABLE next (id int)');
    await migrateTo(newer.path);
    await expect(migrate(asVersion('99.0.0'))).rejects.toThrow(
      `The database has the migration "${NEXT}", which this version does not know, and it does not say who can run on it.`,
    );
  });

  it('cannot state what is no version', async () => {
    for (const version of ['', '1.0', 'v1.0.0', '1.0.0-rc.1']) {
      await expect(database.rows(statesOldestCode(randomUUID(), version))).rejects.toMatchObject({
        constraint: 'idempotency_schema_oldest_code_is_version',
      });
    }
  });

  it('is one that every migration of this package states its oldest version for', async () => {
    const silent = `SELECT migration_name FROM _prisma_migrations EXCEPT SELECT migration_name FROM idempotency_schema`;
    expect(await database.rows(silent)).toEqual([]);
  });
});

describe('a start', () => {
  let database: TestDatabase;
  beforeEach(async () => (database = await createTestDatabase({ empty: true })));
  afterEach(() => database.drop());

  const start = (MIGRATE: string) =>
    startTestService({ connectionString: database.connectionString, environment: { MIGRATE } });
  const relations = () => database.rows(`SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace`);

  it('with MIGRATE=check refuses while migrations are missing, names them and the command, and changes nothing', async () => {
    const names = await missingMigrations({ connectionString: database.connectionString });
    expect(names.length).toBeGreaterThan(3);
    const refusal = [
      'Migrations are missing in this database:',
      ...names.map((name) => `  ${name}`),
      'Apply them with "npx grpc-idempotency migrate", or start with MIGRATE=run.',
    ];
    await expect(start('check')).rejects.toThrow(new MigrationRefused(refusal.join('\n')));
    expect(await relations()).toEqual([]);
  });

  it('with MIGRATE=check names only what is missing, and serves when nothing is', async () => {
    const { connectionString } = database;
    await migrate({ connectionString });
    const newer = await copyMigrations();
    await newer.write(NEXT, 'CREATE TABLE next (id int)');
    const ahead = { connectionString, directory: newer.path };
    await expect(prepareSchema('check', ahead)).rejects.toThrow(`in this database:\n  ${NEXT}\nApply`);
    await newer.drop();

    const service = await start('check');
    await service.stop();
  });

  it('with MIGRATE=check refuses an applied migration that was edited, by name', async () => {
    const { connectionString } = database;
    const edited = await copyMigrations();
    await edited.write(NEXT, 'CREATE TABLE next (id int)');
    await migrate({ connectionString, directory: edited.path });
    await edited.write(NEXT, 'CREATE TABLE next (id bigint)');
    await expect(prepareSchema('check', { connectionString, directory: edited.path })).rejects.toThrow(
      `"${NEXT}" was edited`,
    );
    await edited.drop();
  });

  it('with MIGRATE=never does not look: one that may not even read the list of migrations is no obstacle', async () => {
    const { connectionString } = database;
    await migrate({ connectionString });
    await database.rows('DROP TABLE _prisma_migrations');
    const service = await start('never');
    await service.stop();
    expect(await database.rows(`SELECT to_regclass('_prisma_migrations') AS list`)).toEqual([{ list: null }]);
  });

  it('without MIGRATE applies what is missing', async () => {
    const service = await start('');
    await service.stop();
    expect(await missingMigrations({ connectionString: database.connectionString })).toEqual([]);
  });
});
