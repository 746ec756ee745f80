import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** Starts a simulator, is gone while it starts, and tells how it ended and what it printed. */
async function leftWhileItStarts(starts: 'well' | 'not' | 'late'): Promise<readonly [code: unknown, printed: string]> {
  const child = fork(join(__dirname, '..', 'support', 'waiting-simulator-main.ts'), [], {
    ...{ execArgv: ['--import', 'tsx'], env: { PATH: process.env['PATH'], STARTS: starts } },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let printed = '';
  // The 'close' of a child that was let go never comes.
  const read = [child.stdout, child.stderr].map(async (stream) => {
    for await (const text of stream ?? []) printed += String(text);
  });
  const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
  const exited = once(child, 'exit');
  await once(child, 'message');
  child.disconnect();
  const [code, signal] = (await exited) as [number | null, NodeJS.Signals | null];
  clearTimeout(late);
  await Promise.all(read);
  return [code ?? signal, printed];
}

jest.setTimeout(60_000);

describe('a simulator whose service is gone before it is ready', () => {
  it('ends, and says nothing', async () => {
    expect(await leftWhileItStarts('well')).toEqual([0, '']);
  });

  it('says nothing either where it cannot start any more', async () => {
    expect(await leftWhileItStarts('not')).toEqual([1, '']);
  });

  it('ends also where it was left before it could listen for that', async () => {
    expect(await leftWhileItStarts('late')).toEqual([0, '']);
  });
});
