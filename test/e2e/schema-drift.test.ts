import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PoolClient } from 'pg';
import { describeTable } from '../support/database-schema';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { readPrismaSchema, type TableDescription } from '../support/prisma-schema';
import { ROOT } from '../support/run-program';

const SCHEMA = readFileSync(join(ROOT, 'prisma', 'schema.prisma'), 'utf8');

describe('prisma/schema.prisma and the migrations', () => {
  let database: TestDatabase;
  let client: PoolClient;

  beforeAll(async () => {
    database = await createTestDatabase();
    client = await database.pool.connect();
  });

  // What a test changes is gone after it.
  beforeEach(() => client.query('BEGIN'));
  afterEach(() => client.query('ROLLBACK'));

  afterAll(async () => {
    client.release();
    await database.drop();
  });

  async function migrated(tables: readonly TableDescription[]): Promise<readonly TableDescription[]> {
    const descriptions: TableDescription[] = [];
    for (const { name } of tables) descriptions.push(await describeTable(client, name));
    return descriptions;
  }

  it('say the same of every table that has a model', async () => {
    const modelled = readPrismaSchema(SCHEMA);
    expect(modelled.map(({ name }) => name)).toContain('payments');
    expect(await migrated(modelled)).toEqual(modelled);
  });

  it.each([
    ['a column', 'ALTER TABLE payments ADD COLUMN note text'],
    ['a column less', 'ALTER TABLE payments DROP COLUMN authorization_id'],
    ['another type', 'ALTER TABLE payments ALTER COLUMN etag TYPE text'],
    ['another length', 'ALTER TABLE payments ALTER COLUMN currency TYPE char(4)'],
    ['another precision', 'ALTER TABLE payments ALTER COLUMN created_at TYPE timestamptz(3)'],
    ['a column that may be null', 'ALTER TABLE payments ALTER COLUMN order_id DROP NOT NULL'],
    ['another default', `ALTER TABLE payments ALTER COLUMN metadata SET DEFAULT '[]'`],
    ['no default', 'ALTER TABLE payments ALTER COLUMN created_at DROP DEFAULT'],
    ['another primary key', 'ALTER TABLE payments DROP CONSTRAINT payments_pkey, ADD PRIMARY KEY (scope, payment_id)'],
    ['an index less', 'DROP INDEX payments_scope_order'],
    ['a unique index', 'CREATE UNIQUE INDEX more ON payments (etag)'],
    [
      'another order',
      'DROP INDEX payments_scope_order; CREATE INDEX payments_scope_order ON payments (order_id, scope)',
    ],
    ['no table', 'DROP TABLE payments'],
  ])('differ where a migration brings %s that the schema does not know', async (_, change) => {
    await client.query(change);
    const modelled = readPrismaSchema(SCHEMA);
    expect(await migrated(modelled)).not.toEqual(modelled);
  });

  it.each([
    ['a column', /^( +)state .*$/m, '$&\n$1note String?'],
    ['a column less', /^ +authorizationId .*\n/m, ''],
    ['another name', /@map\("order_id"\)/, '@map("order")'],
    ['another type', /amountMinor +BigInt/, 'amountMinor Int'],
    ['a column that may be null', /^( +state +String)/m, '$1?'],
    ['a default', /^( +state +String)/m, '$1 @default("authorized")'],
    ['a unique column', /@db\.Char\(3\)/, '$& @unique'],
    ['an index', /@@index\(\[scope, orderId\]/, '@@index([scope, state], map: "more")\n  $&'],
    ['a model', /$/, '\nmodel Dispute {\n  disputeId String @id @db.Uuid\n}\n'],
  ])('differ where the schema brings %s that no migration makes', async (_, found, change) => {
    const changed = SCHEMA.replace(found, change);
    expect(changed).not.toBe(SCHEMA);
    const modelled = readPrismaSchema(changed);
    expect(await migrated(modelled)).not.toEqual(modelled);
  });

  it('are only compared where the schema can be read', () => {
    expect(() => readPrismaSchema(SCHEMA.replace('BigInt', 'Decimal'))).toThrow("can't read the type in: amountMinor");
    expect(() => readPrismaSchema(SCHEMA.replace('@@index', '@@fulltext'))).toThrow("can't read @@fulltext");
  });
});
