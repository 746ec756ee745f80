import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fileSystem, { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataDirectoryInUse, holdDataDirectory } from '../../src/database/data-directory-hold';

let parent: string;
let dataDirectory: string;
let children: ChildProcess[] = [];

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'grpc-idempotency-hold-'));
  dataDirectory = join(parent, 'data');
  await mkdir(dataDirectory);
});

afterEach(async () => {
  children.forEach((child) => child.kill('SIGKILL'));
  children = [];
  await rm(parent, { recursive: true, force: true });
});

/** Another process that holds the directory until it is killed. */
async function holdInAnotherProcess(): Promise<{ kill(): Promise<void> }> {
  const code =
    `require('tsx/cjs'); const { holdDataDirectory } = require('./src/database/data-directory-hold');` +
    `holdDataDirectory(process.argv[1]).then(() => { console.log('held'); setInterval(() => undefined, 60_000); });`;
  const child = spawn(process.execPath, ['-e', code, dataDirectory], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  await once(child.stdout, 'data');
  return {
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('a second hold is refused, names the directory and the next step, and a released one is free again', async () => {
  const first = await holdDataDirectory(dataDirectory);
  const refusal = await holdDataDirectory(dataDirectory).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(DataDirectoryInUse);
  expect((refusal as Error).message).toContain(dataDirectory);
  expect((refusal as Error).message).toContain('DATA_DIRECTORY');
  await first.release();
  const second = await holdDataDirectory(dataDirectory);
  await second.release();
});

test('the hold of a process that lives is seen from another one, and kill -9 frees it', async () => {
  const other = await holdInAnotherProcess();
  await expect(holdDataDirectory(dataDirectory)).rejects.toBeInstanceOf(DataDirectoryInUse);
  await other.kill();
  const mine = await holdDataDirectory(dataDirectory);
  // Nothing of the killed process stays: one number and one socket, both ours.
  expect(await readdir(join(dataDirectory, 'hold'))).toHaveLength(2);
  await mine.release();
});

test('of several at once after a crash exactly one gets it, round after round', async () => {
  const other = await holdInAnotherProcess();
  await other.kill();
  for (let round = 0; round < 50; round += 1) {
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => holdDataDirectory(dataDirectory)));
    const holds = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    expect(holds).toHaveLength(1);
    await holds[0]?.value.release();
  }
});

test('one that was late and took a number that had become free again steps back', async () => {
  const link = fileSystem.link;
  let continueLate = (): void => undefined;
  let lateArrived = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (lateArrived = resolve));
  const spy = jest.spyOn(fileSystem, 'link').mockImplementationOnce(async (from, to) => {
    lateArrived();
    await new Promise<void>((resolve) => (continueLate = resolve));
    return link(from, to);
  });
  const late = holdDataDirectory(dataDirectory);
  await arrived;
  const first = await holdDataDirectory(dataDirectory);
  await first.release();
  const second = await holdDataDirectory(dataDirectory);
  continueLate();
  await expect(late).rejects.toBeInstanceOf(DataDirectoryInUse);
  await second.release();
  spy.mockRestore();
});

test('a path too long for a socket is held all the same', async () => {
  dataDirectory = join(parent, 'a'.repeat(120));
  const first = await holdDataDirectory(dataDirectory);
  await expect(holdDataDirectory(dataDirectory)).rejects.toBeInstanceOf(DataDirectoryInUse);
  await first.release();
});
