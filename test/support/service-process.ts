import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** What a service process is started with; sent to it as JSON. */
export interface ServiceProcessOptions {
  readonly connectionString: string;
  /** Base64 of a descriptor set; default: this package's own. */
  readonly descriptorSet?: string;
  /** How long the authorizer takes, milliseconds. Default 0. */
  readonly authorizerDelayMs?: number;
  /** The authorizer answers only after `proceed`, and says first that it was asked. Default false. */
  readonly authorizerWaits?: boolean;
  /** The authorizer keeps the event loop of the process busy for so long, milliseconds. Default 0. */
  readonly authorizerBlocksMs?: number;
  /** How far the clock of the process is ahead of the true time, milliseconds; negative for behind. Default 0. */
  readonly clockAheadMs?: number;
  /** With a `CARD_NETWORK_ADDRESS` that network is asked, and not the authorizer that a test controls. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What it prints on its standard error is dropped: where the database is away, say, and starts fail. Default false. */
  readonly failsQuietly?: boolean;
  /** It loads its code, and starts only once it is told to: `prepareServiceProcess`. Default false. */
  readonly startsWhenTold?: boolean;
  /** Who runs it, with a directory to write to for what programs leave there. Default: whoever runs the test. */
  readonly user?: { readonly uid: number; readonly gid: number; readonly temporaryDirectory: string };
}

/** A service in an operating system process of its own. */
export interface ServiceProcess {
  readonly grpcPort: number;
  readonly opsPort: number;
  readonly process: ChildProcess;
  /** Resolves when the authorizer has been asked for the n-th time, from 1. Only with `authorizerWaits`. */
  authorizerAsked(times: number): Promise<void>;
  /** How often the authorizer has been asked so far, which is how often the handler got that far. */
  timesAsked(): number;
  /** Lets every authorizer that waits, now or later, answer. */
  proceed(): void;
  /** Sends a signal, to this process alone. */
  kill(signal: NodeJS.Signals): void;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

/** Messages of the process to the test. */
export type FromService =
  | { readonly type: 'loaded' }
  | { readonly type: 'ready'; readonly grpcPort: number; readonly opsPort: number }
  | { readonly type: 'asked'; readonly times: number };

/** Messages of the test to the process. */
export interface ToService {
  readonly type: 'start' | 'proceed';
}

/** Starts the service in a process of its own, on free ports; resolves when it is ready. */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  return whenReady(forkService(options));
}

/** A service process that has loaded its code and does nothing yet. */
export interface PreparedService {
  /** Starts the service, which takes as long as a start takes where nothing has to be compiled. */
  start(): Promise<ServiceProcess>;
  /** Ends it where it was not started. */
  kill(): void;
}

/** For tests in which the time between an end and the next start counts, and the machine's time to load code must not. */
export async function prepareServiceProcess(options: ServiceProcessOptions): Promise<PreparedService> {
  const child = forkService({ ...options, startsWhenTold: true });
  await once(child, 'message');
  return {
    start: () => {
      child.send({ type: 'start' } satisfies ToService);
      return whenReady(child);
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

function forkService(options: ServiceProcessOptions): ChildProcess {
  return fork(join(__dirname, 'service-main.ts'), [JSON.stringify(options)], {
    execArgv: ['--import', 'tsx'],
    ...asUser(options),
    stdio: ['ignore', 'ignore', options.failsQuietly === true ? 'ignore' : 'inherit', 'ipc'],
  });
}

async function whenReady(child: ChildProcess): Promise<ServiceProcess> {
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  let asked = 0;
  const waiting = new Set<() => void>();
  const ready = await new Promise<Extract<FromService, { type: 'ready' }>>((resolve, reject) => {
    void exited.then((how) => reject(new Error(`the service process ended before it was ready: ${how}`)));
    child.on('message', (message: FromService) => {
      if (message.type === 'ready') resolve(message);
      else if (message.type === 'asked') asked = message.times;
      for (const check of waiting) check();
    });
  });
  return {
    ...{ grpcPort: ready.grpcPort, opsPort: ready.opsPort, process: child, exited },
    authorizerAsked: (times) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (asked < times) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    timesAsked: () => asked,
    proceed: () => void child.send({ type: 'proceed' } satisfies ToService),
    kill: (signal) => void child.kill(signal),
  };
}

function asUser({ user }: ServiceProcessOptions) {
  if (user === undefined) return {};
  const { uid, gid, temporaryDirectory } = user;
  return { uid, gid, env: { PATH: process.env['PATH'], TMPDIR: temporaryDirectory } };
}
