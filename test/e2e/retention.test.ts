import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { policyOf, datedKey } from '../support/claim-requests';
import { daysAgo, makeDay, stagesOf, tableOf } from '../support/old-days';
import { paymentRequest } from '../support/payment-requests';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { ROOT, runProgram } from '../support/run-program';
import { startTestService, type TestService } from '../support/service';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';

/** Runs the program of `npx grpc-idempotency` to its end. */
async function cli(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const run = runProgram(['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), ...args], environment);
  const code = await run.exited;
  // Every command names its database.
  const lines = run.output().trimEnd().split('\n');
  return { code, lines: lines.filter((line) => !line.startsWith('database: ')) };
}

describe('retention, where the service may not create tables', () => {
  const role = `limited_${randomUUID().replaceAll('-', '')}`;
  let database: TestDatabase;
  let service: TestService;
  let client: StockClient;
  let limitedUrl: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.rows(`
      CREATE ROLE ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`);
    const url = new URL(database.connectionString);
    url.searchParams.set('options', `-c role=${role}`);
    limitedUrl = url.href;
    service = await startTestService({ connectionString: limitedUrl, environment: { MIGRATE: 'check' } });
    client = createStockClient(service.grpcPort);
  });

  afterAll(async () => {
    client.close();
    await service.stop();
    await database.rows(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await database.drop();
  });

  const pay = async (requestId: string): Promise<status> => {
    const answer = await client.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
    return answer.code;
  };

  it('the service starts, says so, serves what it can, and serves all once another role ran `maintain`', async () => {
    expect(service.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { step: 'create_days', msg: expect.stringContaining('run `grpc-idempotency maintain`') as unknown },
    ]);
    expect(await service.metrics()).toContain('idempotency_retention_faults_total{step="create_days"} 1');
    expect(await pay(randomUUID())).toBe(status.OK);
    expect(await pay(datedKey(Date.now()))).toBe(status.UNAVAILABLE);

    const refused = await cli(['maintain'], { DATABASE_URL: limitedUrl });
    expect(refused.code).toBe(1);
    expect(refused.lines[0]).toMatch(/^failed to create days: the role of DATABASE_URL does not own/);

    const maintained = await cli(['maintain'], { DATABASE_URL: database.connectionString });
    expect(maintained.code).toBe(0);
    const days = Object.keys(await stagesOf(database));
    expect(maintained.lines.slice(0, -1)).toEqual(days.map((day) => `created the day ${day}`));
    expect(maintained.lines.at(-1)).toBe(
      `${days.length + 1} partitions; records: 1 completed; kept from dropped days: 0`,
    );
    expect(await pay(datedKey(Date.now()))).toBe(status.OK);
  });

  it('a day that is over stays, and goes when the role that owns it comes', async () => {
    const days = policyOf('CreatePayment').retentionMs / 86_400_000;
    const old = await daysAgo(database, days + 30);
    await makeDay(database, old);
    await database.rows(`
      INSERT INTO ${tableOf(old)}
        (created_at, lease_until, bucket, attempt, method, id, owner_token, state, fingerprint, scope, request_id,
         instance)
      VALUES (now(), now(), '${old}', 1, 1, gen_random_uuid(), gen_random_uuid(), 'parked', '\\x0101', 'account-1',
        gen_random_uuid()::text, 'somewhere')`);

    const refused = await cli(['maintain'], { DATABASE_URL: limitedUrl });
    expect(refused.code).toBe(1);
    expect(refused.lines[0]).toMatch(/^failed to drop days: the role of DATABASE_URL does not own/);
    expect(await stagesOf(database)).toHaveProperty(old, 'attached');

    const maintained = await cli(['maintain'], { DATABASE_URL: database.connectionString });
    expect(maintained).toMatchObject({ code: 0 });
    expect(maintained.lines[0]).toBe(`dropped the day ${old}, and kept 1 unfinished of its records`);
    expect(maintained.lines.at(-1)).toMatch(/kept from dropped days: 1$/);
  });
});

describe('retention in a running service', () => {
  let database: TestDatabase;
  let service: TestService;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await startTestService({ connectionString: database.connectionString });
  });

  afterAll(async () => {
    await service.stop();
    await database.drop();
  });

  it('runs soon after the start, and its numbers are shown', async () => {
    const old = await daysAgo(database, 400);
    await makeDay(database, old);

    await until('the old day is gone', async () => (await stagesOf(database))[old] === undefined);
    await until('the metrics tell', async () => !(await service.metrics()).includes('idempotency_partitions 0'));

    expect(await service.metrics()).toMatch(/^idempotency_days_dropped_total 1$/m);
    expect(service.lines).toContainEqual(expect.objectContaining({ day: old, msg: 'a day of records was dropped' }));
  });
});
