import type { Logger } from 'pino';
import { type CardNetworkProcessOptions, startCardNetworkProcess } from './card-network/start-process';
import { type ReceiptsProcessOptions, startReceiptsProcess } from './receipts/start-process';
import type { Simulator, SimulatorEvent } from './simulator-process';

/** What the simulators of a service are started with. */
export interface SimulatorsOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  readonly cardNetwork: Pick<CardNetworkProcessOptions, 'port' | 'faults' | 'declines'>;
  readonly receipts: Pick<ReceiptsProcessOptions, 'port'>;
  /** Told when one has ended, and when it was started again. */
  readonly logger: Logger;
}

/** The outside world of a service that names no other: processes that end with it. */
export interface Simulators {
  /** Starts the card network; resolves with its address. */
  startCardNetwork(): Promise<string>;
  /** Starts the mail service; resolves with its address. */
  startReceipts(): Promise<string>;
  /** Ends those that were started, at the same time. */
  stop(): Promise<void>;
}

/** Starts nothing yet. */
export function createSimulators({ connectionString, cardNetwork, receipts, logger }: SimulatorsOptions): Simulators {
  const started: Simulator[] = [];
  const keep = (simulator: Simulator): Promise<string> => {
    started.push(simulator);
    return simulator.address;
  };
  const logging =
    (name: string, meanwhile: string) =>
    (event: SimulatorEvent): void => {
      switch (event.type) {
        case 'ended':
          return logger.error(
            { how: event.how, againAfterMs: event.againAfterMs },
            `the ${name} simulator has ended and is started again; until then ${meanwhile}`,
          );
        case 'started_again':
          return logger.info(`the ${name} simulator was started again`);
      }
    };
  return {
    startCardNetwork: () => {
      const onEvent = logging('card network', 'no payment can be made');
      return keep(startCardNetworkProcess({ connectionString, ...cardNetwork, onEvent }));
    },
    startReceipts: () => {
      const onEvent = logging('receipts', 'events wait in the outbox');
      return keep(startReceiptsProcess({ connectionString, ...receipts, onEvent }));
    },
    stop: async () => {
      await Promise.all(started.map((simulator) => simulator.stop()));
    },
  };
}
