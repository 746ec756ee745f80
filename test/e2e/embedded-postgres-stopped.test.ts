import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../src/database/embedded-postgres';
import { watchForEnd } from '../../src/database/process-end';
import { removeDataDirectory } from '../support/data-directory';
import { makeTemporaryDirectory } from '../support/postgres';

jest.setTimeout(60_000);

it('is not told of a database that is stopped', async () => {
  const dataDirectory = join(await makeTemporaryDirectory(), 'data');
  const told: string[] = [];
  const postgres = await startEmbeddedPostgres({
    dataDirectory,
    durable: false,
    onEnded: (log) => void told.push(log),
  });
  await postgres.stop();
  // Longer than from one look to the next.
  await new Promise((resolve) => setTimeout(resolve, 1_300));
  expect(told).toEqual([]);
  await removeDataDirectory(dataDirectory);
});

it('a process of somebody else runs', async () => {
  const kill = jest.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('not permitted'), { code: 'EPERM' });
  });
  let told = 0;
  const end = watchForEnd(1, () => (told += 1));
  await new Promise((resolve) => setTimeout(resolve, 1_300));
  end();
  expect(kill).toHaveBeenCalled();
  kill.mockRestore();
  expect(told).toBe(0);
});
