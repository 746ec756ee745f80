import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { status } from '@grpc/grpc-js';
import { Client } from 'pg';
import { COMMANDS } from '../../src/cli/commands';
import { findRunningDatabase } from '../../src/cli/running-database';
import { runCommand } from '../../src/cli/run-command';
import { newRequestId } from '../../src/idempotency/index';
import { postgresStopped, removeDataDirectory } from '../support/data-directory';
import { type MainProcess, startMainProcess } from '../support/main-process';
import { paymentRequest } from '../support/payment-requests';
import { makeTemporaryDirectory } from '../support/postgres';
import { ROOT } from '../support/run-program';
import { createStockClient } from '../support/stock-client';
import { until } from '../support/until';

// A new database on a busy machine.
jest.setTimeout(60_000);

describe('commands while a service runs on its embedded database', () => {
  let dataDirectory: string;
  let service: MainProcess | undefined;

  beforeAll(async () => (dataDirectory = await makeTemporaryDirectory()));
  afterAll(async () => {
    service?.kill('SIGKILL');
    await service?.exited;
    await postgresStopped(dataDirectory);
    await removeDataDirectory(dataDirectory);
  });

  const run = (...args: readonly string[]) => runOn(dataDirectory, args);

  it('use that database, leave it running, and start it themselves when the service is gone', async () => {
    service = await startMainProcess({ DATA_DIRECTORY: dataDirectory });
    const client = createStockClient(service.grpcPort);
    const requestId = newRequestId();
    const request = paymentRequest();
    const pay = () => client.call({ method: 'CreatePayment', request, requestId });
    const paid = await pay();
    expect(paid.code).toBe(status.OK);

    const seen = await run('inspect', '--request-id', requestId);
    expect([seen.code, seen.lines]).toEqual([0, expect.arrayContaining([expect.stringMatching(/state +completed/)])]);
    expect(seen.errors).toEqual([`database: the embedded one in ${dataDirectory}`]);
    expect((await run('migrate', '--check')).lines).toEqual(['no migration is missing']);
    expect((await pay()).bytes).toEqual(paid.bytes);

    const connectionString = await findRunningDatabase(dataDirectory);
    expect(await ask(connectionString, 'operations.md', requestId)).toEqual([
      { scope: 'local', order_id: request['order_id'], payment_id: paid.response?.payment.payment_id },
    ]);
    const receipt = () => ask(connectionString, 'outbox.md', requestId);
    await until('the mail of the payment went out', async () =>
      (await receipt()).some((row) => row['state'] === 'delivered' && row['mail_id'] !== null),
    );
    expect(await receipt()).toHaveLength(1);

    client.close();
    service.kill('SIGTERM');
    expect(await service.exited).toBe(0);
    expect(await findRunningDatabase(dataDirectory)).toBeUndefined();
    expect((await run('inspect', '--request-id', requestId)).lines).toEqual(seen.lines.map(anyAge));
    await postgresStopped(dataDirectory);
  });

  it('see none where there is none, or where what is noted names no port', async () => {
    const empty = await makeTemporaryDirectory();
    expect(await findRunningDatabase(join(empty, 'none'))).toBeUndefined();
    expect(await findRunningDatabase(empty)).toBeUndefined();
    await mkdir(join(empty, 'postgres', 'cluster'), { recursive: true });
    await writeFile(join(empty, 'postgres', 'cluster', 'postmaster.pid'), '1\n/data\n');
    await writeFile(join(empty, 'postgres', 'password'), 'secret\n');
    expect(await findRunningDatabase(empty)).toBeUndefined();
    await rm(empty, { recursive: true });
  });
});

describe('commands where there is no database', () => {
  const key = ['--request-id', newRequestId(), '--scope', 'shop-1', '--method', 'CreatePayment'];

  it.each([
    ...[['inspect', ...key], ['inspect', ...key, '--json'], ['inspect', '--parked'], ['outbox'], ['reconcile']],
    ...[
      ['release', ...key, '--dry-run'],
      ['release', ...key],
      ['expire', ...key],
    ],
    ...[['reconcile', '--repair'], ['outbox', 'requeue', '--all'], ['maintain'], ['migrate', '--check']],
  ])('make none, and say where they looked: %s', async (...words) => {
    const parent = await makeTemporaryDirectory();
    const missing = join(parent, 'missing');
    const none = (where: string) => ({
      ...{ code: 1, lines: [] },
      errors: [`no database in ${where}: set DATA_DIRECTORY or DATABASE_URL as the service does`],
    });
    expect(await runOn(missing, words)).toEqual(none(missing));
    expect(await readdir(parent)).toEqual([]);
    // A directory in which something else lies, or one that points to where a database was.
    expect(await runOn(parent, words)).toEqual(none(parent));
    expect(await readdir(parent)).toEqual([]);
    await writeFile(join(parent, 'postgres-location'), `${join(parent, 'gone')}\n`);
    expect(await runOn(parent, words)).toEqual(none(parent));
    expect(await readdir(parent)).toEqual(['postgres-location']);
    await removeDataDirectory(parent);
  });

  it('name the whole path of a directory that is told from the current one', async () => {
    const { errors } = await runOn('no-such-directory', ['outbox']);
    expect(errors[0]).toContain(`no database in ${resolve('no-such-directory')}: `);
  });
});

/** Runs the query that a page shows, for a key. */
async function ask(
  connectionString: string | undefined,
  page: string,
  requestId: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const text = await readFile(join(ROOT, 'docs', page), 'utf8');
  const [, query = ''] = /```sql\n([^`]*)```/.exec(text) ?? [];
  const client = new Client({ connectionString });
  await client.connect();
  const filled = query.replace(`'shop-1'`, `'local'`).replace(`'…'`, `'${requestId}'`);
  return client
    .query<Record<string, unknown>>(filled)
    .then(({ rows }) => rows)
    .finally(() => client.end());
}

/** Runs a command line in this process, on the embedded database of a data directory. */
async function runOn(dataDirectory: string, args: readonly string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  const code = await runCommand({
    ...{ commands: COMMANDS, args, environment: { DATA_DIRECTORY: dataDirectory, USER: 'ada' } },
    ...{ print: (line) => void lines.push(line), printError: (line) => void errors.push(line) },
  });
  return { code, lines, errors };
}

/** What is shown of a record, however long ago it was made. */
function anyAge(line: string): unknown {
  return line.endsWith(' ago') ? (expect.stringContaining(line.slice(0, 30)) as unknown) : line;
}
