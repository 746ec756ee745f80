import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A server that answers every call, in a process of its own. */
export interface AnsweringProcess {
  /** Has it listen; resolves with its port once it does. */
  listen(): Promise<number>;
  /** Ends it as a crash does; resolves when it is gone. */
  kill(): Promise<void>;
}

/** Where it listens, and how long it takes to answer. */
export interface AnsweringOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Default 5. */
  readonly takesMs?: number;
}

/** Starts the process; resolves when it is ready to listen, which then takes no time worth mentioning. */
export async function startAnsweringProcess({
  port = 0,
  takesMs = 5,
}: AnsweringOptions = {}): Promise<AnsweringProcess> {
  const child = fork(join(__dirname, 'answering-server.ts'), [String(port), String(takesMs)], {
    execArgv: ['--import', 'tsx'],
  });
  const exited = once(child, 'exit');
  await once(child, 'message');
  return {
    listen: async () => {
      child.send('listen');
      const [listensOn] = (await once(child, 'message')) as [number];
      return listensOn;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
