/**
 * The simulated card network as a process of its own: by itself (`node dist/card-network/main.js`), or started by the
 * payments service, with which it ends.
 */
import { OperatorError } from '../operator-error';
import { readCardNetworkEnvironment } from './environment';
import { startCardNetwork } from './start-card-network';

/** A database that gives no answer keeps no process; milliseconds. */
const STOP_WITHIN_MS = 1_500;

/** What the process tells who started it. */
export interface FromCardNetwork {
  readonly address: string;
}

async function main(): Promise<void> {
  const starting = startCardNetwork(readCardNetworkEnvironment(process.env));
  let stopping: Promise<void> | undefined;
  const stop = (): void => {
    setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
    stopping ??= starting.then((network) => network.stop()).then(() => process.exit(0), fail);
  };
  const isChild = process.send !== undefined;
  // Who started it ends it, once its own calls have ended: a Ctrl-C in the terminal reaches both.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, isChild ? () => undefined : stop);
  process.once('disconnect', stop);
  const { address } = await starting;
  if (isChild) process.send?.({ address } satisfies FromCardNetwork);
  else console.log(`ready: the card network simulator on ${address}`);
}

function fail(error: unknown): never {
  console.error(error instanceof OperatorError ? error.message : error);
  process.exit(1);
}

main().catch(fail);
