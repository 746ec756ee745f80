import { join } from 'node:path';
import { type Simulator, startSimulator, type SimulatorEvent } from '../simulator-process';

/** What the process of the simulator is started with. */
export interface CardNetworkProcessOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  /** What the simulator reads beside it, such as `CARD_NETWORK_FAULTS`. Default: this process's own environment. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Told when it ends by itself, and when it was started again. Default: nobody. */
  readonly onEvent?: (event: SimulatorEvent) => void;
}

/** Starts the simulated card network as a child, on a free port of loopback where the environment names none. */
export function startCardNetworkProcess(options: CardNetworkProcessOptions): Simulator {
  const { connectionString, environment = process.env, onEvent = () => undefined } = options;
  return startSimulator({
    module: join(__dirname, 'main'),
    environment: (port) => ({
      ...environment,
      DATABASE_URL: connectionString,
      ...(port === undefined ? {} : { CARD_NETWORK_PORT: String(port), ...WHAT_HAS_HAPPENED }),
    }),
    onEvent,
  });
}

/** What was to happen in turn was for the first one: a script that ends in a crash would end each after it likewise. */
const WHAT_HAS_HAPPENED = { CARD_NETWORK_FAULTS: '', CARD_NETWORK_DECLINES: '' };
