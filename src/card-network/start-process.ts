import { join } from 'node:path';
import { type Simulator, startSimulator, type SimulatorEvent } from '../simulator-process';

/** What the process of the simulator is started with. */
export interface CardNetworkProcessOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  /** On 127.0.0.1. Default 0: any free one, and the same again whenever it is started again. */
  readonly port?: number | undefined;
  /** What goes wrong with its first calls, as `readFaults` reads it. Default: nothing. */
  readonly faults?: string | undefined;
  /** How many cards are declined before the first is charged. Default 0. */
  readonly declines?: number | undefined;
  /** Told when it ends by itself, and when it was started again. Default: nobody. */
  readonly onEvent?: (event: SimulatorEvent) => void;
}

/**
 * Starts the simulated card network as a child. What it is to do comes from the options alone, whatever the environment
 * of this process says.
 */
export function startCardNetworkProcess(options: CardNetworkProcessOptions): Simulator {
  const { connectionString, port = 0, faults = '', declines = 0, onEvent = () => undefined } = options;
  return startSimulator({
    module: join(__dirname, 'main'),
    environment: (portBefore) => ({
      ...process.env,
      ...{ DATABASE_URL: connectionString, CARD_NETWORK_PORT: String(portBefore ?? port) },
      // What was to happen in turn was for the first one: a script that ends in a crash would end each after it likewise.
      CARD_NETWORK_FAULTS: portBefore === undefined ? faults : '',
      CARD_NETWORK_DECLINES: portBefore === undefined ? String(declines) : '',
    }),
    onEvent,
  });
}
