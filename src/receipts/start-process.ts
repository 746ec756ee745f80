import { join } from 'node:path';
import { type Simulator, startSimulator, type SimulatorEvent } from '../simulator-process';

/** What the process of the simulator is started with. */
export interface ReceiptsProcessOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  /** What the simulator reads beside it. Default: this process's own environment. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Told when it ends by itself, and when it was started again. Default: nobody. */
  readonly onEvent?: (event: SimulatorEvent) => void;
}

/**
 * Starts the receipts simulator as a child, on a free port of loopback where the environment names none. Only this
 * machine reaches it, so it asks nobody who they are.
 */
export function startReceiptsProcess(options: ReceiptsProcessOptions): Simulator {
  const { connectionString, environment = process.env, onEvent = () => undefined } = options;
  return startSimulator({
    module: join(__dirname, 'main'),
    environment: (port) => ({
      ...environment,
      ...{ DATABASE_URL: connectionString, RECEIPTS_HOST: '127.0.0.1', AUTH_TOKENS_FILE: '' },
      RECEIPTS_PORT: String(port ?? (environment['RECEIPTS_PORT'] || 0)),
    }),
    onEvent,
  });
}
