/**
 * A simulator whose start lasts until the process that has started it is gone. It then runs, or fails with `STARTS=not`;
 * with `STARTS=late` it has not even begun to start by then.
 */
import { once } from 'node:events';
import { runSimulator } from '../../src/simulator-main';

async function start(): Promise<{ readonly address: string; stop(): Promise<void> }> {
  if (process.connected) await once(process, 'disconnect');
  if (process.env['STARTS'] === 'not') throw new Error('the database is gone');
  // As a server does, it keeps the process alive.
  const server = setInterval(() => undefined, 1_000);
  const stop = async (): Promise<void> => {
    await new Promise(setImmediate);
    clearInterval(server);
  };
  return { address: '127.0.0.1:1', stop };
}

const run = (): void => runSimulator({ name: 'waiting', start, stopWithinMs: 1_000 });
if (process.env['STARTS'] === 'late') process.once('disconnect', () => setImmediate(run));
else run();
process.send?.('loaded');
