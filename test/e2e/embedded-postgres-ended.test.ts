import { join } from 'node:path';
import { notedPostgres, removeDataDirectory } from '../support/data-directory';
import { type MainProcess, startMainProcess } from '../support/main-process';
import { makeTemporaryDirectory } from '../support/postgres';

// A start of the whole service with a database of its own.
jest.setTimeout(90_000);

let dataDirectory: string;
let service: MainProcess;

beforeEach(async () => {
  dataDirectory = join(await makeTemporaryDirectory(), 'data');
  service = await startMainProcess({ DATA_DIRECTORY: dataDirectory });
});
afterEach(async () => {
  service.kill('SIGKILL');
  await service.exited;
  await removeDataDirectory(dataDirectory);
});

it('a service whose embedded database ended says so, names its log, and ends', async () => {
  process.kill((await notedPostgres(dataDirectory)) ?? NaN, 'SIGKILL');
  expect(await service.exited).toBe(1);
  expect(service.output()).toContain(
    `The embedded database has ended by itself. Its log is ${join(dataDirectory, 'postgres', 'log')}; start the service again ` +
      'when what it says is repaired.',
  );
});

it('one that is stopped does not take the end of its database for that', async () => {
  service.kill('SIGTERM');
  expect(await service.exited).toBe(0);
  expect(service.output()).not.toContain('has ended by itself');
});
