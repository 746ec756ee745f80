import { join } from 'node:path';
import { type Simulator, startSimulator, type SimulatorEvent } from '../simulator-process';

/** What the process of the simulator is started with. */
export interface ReceiptsProcessOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  /** On 127.0.0.1. Default 0: any free one, and the same again whenever it is started again. */
  readonly port?: number | undefined;
  /** Told when it ends by itself, and when it was started again. Default: nobody. */
  readonly onEvent?: (event: SimulatorEvent) => void;
}

/**
 * Starts the receipts simulator as a child. Only this machine reaches it, so it asks nobody who they are. Where it
 * listens comes from the options alone, whatever the environment of this process says.
 */
export function startReceiptsProcess(options: ReceiptsProcessOptions): Simulator {
  const { connectionString, port = 0, onEvent = () => undefined } = options;
  return startSimulator({
    module: join(__dirname, 'main'),
    environment: (portBefore) => ({
      ...process.env,
      ...{ DATABASE_URL: connectionString, RECEIPTS_HOST: '127.0.0.1', AUTH_TOKENS_FILE: '' },
      RECEIPTS_PORT: String(portBefore ?? port),
    }),
    onEvent,
  });
}
