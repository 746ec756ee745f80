import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { COMMANDS } from '../../src/cli/commands';
import { findRunningDatabase } from '../../src/cli/running-database';
import { runCommand } from '../../src/cli/run-command';
import { newRequestId } from '../../src/idempotency/index';
import { postgresStopped, removeDataDirectory } from '../support/data-directory';
import { type MainProcess, startMainProcess } from '../support/main-process';
import { paymentRequest } from '../support/payment-requests';
import { makeTemporaryDirectory } from '../support/postgres';
import { createStockClient } from '../support/stock-client';

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

  const run = async (...args: readonly string[]) => {
    const lines: string[] = [];
    const code = await runCommand({
      ...{ commands: COMMANDS, args, environment: { DATA_DIRECTORY: dataDirectory, USER: 'ada' } },
      ...{ print: (line) => void lines.push(line), printError: (line) => void lines.push(line) },
    });
    return { code, lines };
  };

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
    expect((await run('migrate', '--check')).lines).toEqual(['no migration is missing']);
    expect((await pay()).bytes).toEqual(paid.bytes);

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
    await removeDataDirectory(empty);
  });
});

/** What is shown of a record, however long ago it was made. */
function anyAge(line: string): unknown {
  return line.endsWith(' ago') ? (expect.stringContaining(line.slice(0, 30)) as unknown) : line;
}
