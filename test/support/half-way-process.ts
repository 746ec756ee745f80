import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Point } from './pay-in-steps';

/** What the process is started with; sent to it as JSON. */
export interface HalfWayOptions {
  readonly connectionString: string;
  readonly stopsAt: Point;
}

/** Messages of the process to the test. */
export type FromHalfWay = { readonly type: 'ready'; readonly port: number } | { readonly type: 'reached' };

/** A service in an operating system process of its own that gets half way with every payment. */
export interface HalfWayProcess {
  readonly port: number;
  /** Resolves when it stands still where it was told to. */
  readonly reached: Promise<void>;
  /** Ends the process without a chance to clean up. */
  kill(): Promise<void>;
}

/** Starts it; resolves when it serves. */
export async function startHalfWayProcess(options: HalfWayOptions): Promise<HalfWayProcess> {
  const child = fork(join(__dirname, 'half-way-main.ts'), [JSON.stringify(options)], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  let reach = (): void => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const port = await new Promise<number>((resolve, reject) => {
    void exited.then(() => reject(new Error('the process ended before it was ready')));
    child.on('message', (message: FromHalfWay) => {
      if (message.type === 'ready') resolve(message.port);
      else reach();
    });
  });
  return {
    ...{ port, reached },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
