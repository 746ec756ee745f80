import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { type CallEnd, credentials, loadPolicies, newRequestId } from '../../src/idempotency/index';
import { GIVE_UP_AFTER_MS } from '../../src/outbox/relay-options';
import { createReceiptsClient, type ReceiptsClient } from '../../src/receipts/receipts-client';
import { readReceiptsConfig } from '../../src/receipts/receipts-config';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestReceipts, type TestReceipts } from '../support/receipts';
import { ROOT, runProgram } from '../support/run-program';

jest.setTimeout(60_000);

let database: TestDatabase;
let receipts: TestReceipts;
let client: ReceiptsClient;

beforeAll(async () => {
  database = await createTestDatabase();
  receipts = await startTestReceipts(database.connectionString);
  client = createReceiptsClient(`127.0.0.1:${receipts.port}`, { credentials: credentials.createInsecure() });
});

beforeEach(() => database.rows('TRUNCATE receipt_mails'));

afterAll(async () => {
  client.close();
  await receipts.stop();
  await database.drop();
});

const REQUEST = { paymentId: 'p-1', orderId: 'o-1', amountMinor: 1250n, currency: 'EUR' };

it('a receipt that is asked for twice under one key is sent once, and both are told of that mail', async () => {
  const requestId = newRequestId();
  const ends: CallEnd[] = [];
  const onEnd = (end: CallEnd): void => void ends.push(end);
  const first = await client.sendReceipt(REQUEST, { requestId, onEnd });
  const again = await client.sendReceipt(REQUEST, { requestId, onEnd });
  expect(again).toEqual(first);
  expect(ends.map(({ replayed }) => replayed)).toEqual([false, true]);
  expect(await database.rows('SELECT mail_id, scope, request_id FROM receipt_mails')).toEqual([
    { mail_id: first.mailId, scope: 'local', request_id: requestId },
  ]);
  expect(Math.abs(Number(first.sendTime?.seconds) - Date.now() / 1_000)).toBeLessThan(60);
});

it('at the same time, likewise', async () => {
  const requestId = newRequestId();
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.sendReceipt(REQUEST, { requestId })));
  expect(new Set(answers.map(({ mailId }) => mailId)).size).toBe(1);
  expect(await database.count('receipt_mails')).toBe(1);
});

it('no event is sent so late that its key would be refused, and none is repeated after its record is gone', () => {
  const policy = loadPolicies(descriptorSet).get('/receipts.v1.ReceiptsService/SendReceipt');
  expect(GIVE_UP_AFTER_MS).toBeLessThan(policy?.maxKeyAgeMs ?? 0);
  expect(GIVE_UP_AFTER_MS).toBeLessThan(policy?.retentionMs ?? 0);
});

it('an undated key is refused: only a dated one stays dead after its record is gone', async () => {
  const refused = client.sendReceipt(REQUEST, { requestId: randomUUID() });
  await expect(refused).rejects.toThrow(/version 7|UUIDv7/);
  expect(await database.count('receipt_mails')).toBe(0);
});

it('a receipt without content is refused, and every field is named', async () => {
  const refused = client.sendReceipt(
    { paymentId: '', orderId: 'x'.repeat(129), amountMinor: 0n, currency: 'eur' },
    { requestId: newRequestId() },
  );
  await expect(refused).rejects.toMatchObject({
    code: status.INVALID_ARGUMENT,
    details: expect.stringMatching(/payment_id: .*order_id: .*amount_minor: .*currency: /) as string,
  });
  expect(await database.count('receipt_mails')).toBe(0);
});

describe('the process', () => {
  const run = (environment: Readonly<Record<string, string>>) =>
    runProgram(['--import', 'tsx', join(ROOT, 'src', 'receipts', 'main.ts')], environment);

  it('says that it is ready, serves, and ends at SIGTERM', async () => {
    const program = run({ DATABASE_URL: database.connectionString, RECEIPTS_PORT: '0' });
    try {
      const [, port = ''] = await program.printed(/ready: the receipts simulator on 127\.0\.0\.1:(\d+)/);
      const other = createReceiptsClient(`127.0.0.1:${port}`, { credentials: credentials.createInsecure() });
      const requestId = newRequestId();
      const { mailId } = await other.sendReceipt(REQUEST, { requestId });
      other.close();
      // Another process on the same database is told of the same mail.
      expect((await client.sendReceipt(REQUEST, { requestId })).mailId).toBe(mailId);
      expect(await database.count('receipt_mails')).toBe(1);
    } finally {
      program.kill('SIGTERM');
    }
    expect(await program.exited).toBe(0);
  });

  it('is told at once what is wrong with its environment, without the password of the database', () => {
    const environment = { RECEIPTS_HOST: '0.0.0.0', RECEIPTS_PORT: '65536', DATABASE_URL: 'mysql://u:secret@h/d' };
    expect(() => readReceiptsConfig(environment)).toThrow(
      'settings that cannot be used:\n' +
        '  RECEIPTS_PORT is "65536": expected a whole number from 0 to 65535\n' +
        '  DATABASE_URL: expected a URL that begins with postgres://\n' +
        '  RECEIPTS_HOST is "0.0.0.0": off loopback only with AUTH_TOKENS_FILE',
    );
    expect(readReceiptsConfig({ DATABASE_URL: 'postgres://h/d', RECEIPTS_PORT: '' })).toEqual({
      ...{ host: '127.0.0.1', port: 50_053, databaseUrl: 'postgres://h/d', tokensFile: undefined },
    });
  });
});
