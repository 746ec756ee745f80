import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname, join } from 'node:path';
import type { FromCardNetwork } from './main';
import type { CardNetwork } from './start-card-network';

/** How long the simulator may take to end before it is ended, milliseconds. */
const STOP_WITHIN_MS = 2_000;

/** What the process of the simulator is started with. */
export interface CardNetworkProcessOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  /** What the simulator reads beside it, such as `CARD_NETWORK_FAULTS`. Default: this process's own environment. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Told when it ends by itself; nothing starts it again. */
  readonly onExit?: (how: string) => void;
}

/**
 * Starts the simulator as a child on a free port of loopback; it ends with this process, however that ends.
 *
 * @throws Error when it ended before it was ready; it has then said why on the standard error
 */
export async function startCardNetworkProcess(options: CardNetworkProcessOptions): Promise<CardNetwork> {
  const { connectionString, environment = process.env, onExit } = options;
  // Beside this file, in the language that this process runs.
  const child = fork(join(__dirname, `main${extname(__filename)}`), [], {
    env: { ...environment, DATABASE_URL: connectionString },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit').then(([code, signal]) => String(signal ?? code));
  let isStopping = false;
  const address = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: FromCardNetwork) => resolve(message.address));
    exited.then((how) => reject(new Error(`the card network simulator ended before it was ready: ${how}`)), reject);
  });
  void exited.then((how) => {
    if (!isStopping) onExit?.(how);
  });
  return {
    address,
    stop: async () => {
      isStopping = true;
      if (child.connected) child.disconnect();
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
      await exited;
      clearTimeout(late);
    },
  };
}
