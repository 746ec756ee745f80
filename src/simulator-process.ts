import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { OperatorError } from './operator-error';
import type { FromSimulator } from './simulator-main';

/** How long a simulator may take to end before it is ended, milliseconds. */
const STOP_WITHIN_MS = 2_000;
/** The wait before one that has ended is started again; doubles while it does not stay. Milliseconds. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** One that has been ready for so long had a reason of its own to end, milliseconds. */
const STAYED_MS = 30_000;

/** What is started. */
export interface SimulatorOptions {
  /** Path of its main module, without the ending: it is in the language that this process runs. */
  readonly module: string;
  /** @param port where it has listened before, undefined at the first start: it is to listen there again */
  readonly environment: (port: number | undefined) => NodeJS.ProcessEnv;
  readonly onEvent: (event: SimulatorEvent) => void;
}

/** What happens to a simulator once it was ready. */
export type SimulatorEvent =
  /** It has ended by itself: by an exit code or a signal. */
  { readonly type: 'ended'; readonly how: string; readonly againAfterMs: number } | { readonly type: 'started_again' };

/** A simulator that runs as a child of this process and ends with it, however that ends. */
export interface Simulator {
  /**
   * `127.0.0.1:<port>`, once it listens there; the same whenever it was started again. Rejects where its first start
   * fails: it has then said why on the standard error.
   */
  readonly address: Promise<string>;
  /** Ends it for good, also while it starts. */
  stop(): Promise<void>;
}

/** A simulator ended before it was ready, having said why on the standard error. */
class SimulatorNotStarted extends OperatorError {
  override readonly name = 'SimulatorNotStarted';

  constructor(module: string, how: string) {
    super(`The simulator ${module} could not be started (${how}): see above.`);
  }
}

/** Starts a simulator, and again whenever it ends: what it is asked meanwhile fails as with any service that is away. */
export function startSimulator({ module, environment, onEvent }: SimulatorOptions): Simulator {
  let child: ChildProcess;
  let exited: Promise<string>;
  let isStopping = false;
  let waitMs = FIRST_WAIT_MS;
  let restart: NodeJS.Timeout | undefined;

  /** Resolves with its address; rejects where it ends before it has one. */
  const start = (port: number | undefined): Promise<string> => {
    const started = fork(`${module}${extname(__filename)}`, [], {
      env: environment(port),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const ended = once(started, 'exit').then(([code, signal]) => String(signal ?? code));
    [child, exited] = [started, ended];
    return new Promise<string>((resolve, reject) => {
      started.once('message', ({ address }: FromSimulator) => resolve(address));
      ended.then((how) => reject(new SimulatorNotStarted(module, how)), reject);
    });
  };

  const startAgainWhenEnded = async (port: number, readyAtMs: number): Promise<void> => {
    const how = await exited.catch(String);
    if (isStopping) return;
    if (performance.now() - readyAtMs > STAYED_MS) waitMs = FIRST_WAIT_MS;
    onEvent({ type: 'ended', how, againAfterMs: waitMs });
    restart = setTimeout(() => {
      const startedAtMs = performance.now();
      start(port).then(
        () => onEvent({ type: 'started_again' }),
        () => undefined,
      );
      void startAgainWhenEnded(port, startedAtMs);
    }, waitMs);
    waitMs = Math.min(LONGEST_WAIT_MS, 2 * waitMs);
  };

  const address = start(undefined);
  address.then(
    (ready) => void startAgainWhenEnded(Number(ready.split(':').at(-1)), performance.now()),
    // Whoever waits for the address is told.
    () => undefined,
  );
  return {
    address,
    stop: async () => {
      isStopping = true;
      clearTimeout(restart);
      if (child.connected) child.disconnect();
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
      await exited;
      clearTimeout(late);
    },
  };
}
