import { OperatorError } from './operator-error';

/** What a simulator tells who started it. */
export interface FromSimulator {
  /** `127.0.0.1:<port>` */
  readonly address: string;
}

/** A simulator as its process runs it. */
export interface SimulatorProgram {
  /** For its ready line: `card network`. */
  readonly name: string;
  /** @param isChild whether a service has started this process, which ends it as well */
  readonly start: (isChild: boolean) => Promise<FromSimulator & { stop(): Promise<void> }>;
  /** How long a stop may take where nobody has started it, milliseconds: a database that gives no answer keeps no process. */
  readonly stopWithinMs: number;
}

/** The same for a child: less than who started it waits. */
const CHILD_STOPS_WITHIN_MS = 1_000;

/**
 * Runs a simulator: by itself until SIGTERM or Ctrl-C, or as the child of a service, with which it ends, without a word
 * where that is gone before the simulator is ready.
 */
export function runSimulator({ name, start, stopWithinMs }: SimulatorProgram): void {
  const isChild = process.send !== undefined;
  const starting = start(isChild);
  let stopping: Promise<void> | undefined;
  const stop = (): void => {
    setTimeout(() => process.exit(1), isChild ? CHILD_STOPS_WITHIN_MS : stopWithinMs).unref();
    // A start that fails is answered below.
    stopping ??= starting.then(
      (simulator) => simulator.stop().then(() => process.exit(0), fail),
      () => undefined,
    );
  };
  // Who started it ends it, once its own calls have ended: a Ctrl-C in the terminal reaches both.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, isChild ? () => undefined : stop);
  const isLeft = (): boolean => isChild && !process.connected;
  process.once('disconnect', stop);
  // While the code was being loaded nobody listened.
  if (isLeft()) stop();
  starting.then(
    ({ address }) => {
      if (!isChild) console.log(`ready: the ${name} simulator on ${address}`);
      // Who is gone needs no address: 'disconnect' ends this process, where an error of the channel would crash it.
      else if (process.connected) process.send?.({ address } satisfies FromSimulator, () => undefined);
    },
    (error: unknown) => (isLeft() ? process.exit(1) : fail(error)),
  );
}

/** What the operator can repair is one message; a broken promise of ours comes with its stack. */
function fail(error: unknown): never {
  console.error(error instanceof OperatorError ? error.message : error);
  process.exit(1);
}
