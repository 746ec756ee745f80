import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** One service of the process. */
export interface NarrowService {
  readonly connectionString: string;
  /** Connections of the pool of the business, and of that of the store. */
  readonly poolSize: number;
  /** How long a duplicate waits for the attempt that runs, milliseconds. 0: it is told at once that one runs. */
  readonly maxWaitMs: number;
  /** How long a handler works before it completes, milliseconds. */
  readonly workMs: number;
}

/** What the process is started with; sent to it as JSON. */
export type NarrowOptions = readonly NarrowService[];

/** Messages of the process to the test. */
export type FromNarrow =
  | { readonly type: 'ready'; readonly ports: readonly number[] }
  /** All of its services have stopped, in good order; the faults that they told of. */
  | { readonly type: 'ended'; readonly faults: readonly string[] };

/** Services with few connections each, in an operating system process of their own: to start one takes its time. */
export interface NarrowProcess {
  /** Of the services, in the order of the options. */
  readonly ports: readonly number[];
  /** Stops them in good order and resolves with the faults that they told of; rejects where the process had died. */
  stop(): Promise<readonly string[]>;
  /** Ends it where it still runs. */
  kill(): Promise<void>;
}

/** Starts it; resolves when all of it serves. */
export async function startNarrowProcess(options: NarrowOptions): Promise<NarrowProcess> {
  const child = fork(join(__dirname, 'narrow-main.ts'), [JSON.stringify(options)], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const told = <Type extends FromNarrow['type']>(type: Type): Promise<Extract<FromNarrow, { type: Type }>> =>
    new Promise((resolve, reject) => {
      void exited.then(([code, signal]) =>
        reject(new Error(`the process ended before it was ${type}: ${code ?? signal}`)),
      );
      child.on('message', (message: FromNarrow) => {
        if (message.type === type) resolve(message as Extract<FromNarrow, { type: Type }>);
      });
    });
  const { ports } = await told('ready');
  return {
    ports,
    stop: async () => {
      const ended = told('ended');
      if (child.connected) child.send('stop');
      return (await ended).faults;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
