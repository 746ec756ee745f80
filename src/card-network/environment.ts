import { OperatorError } from '../operator-error';
import { portExpected, readPort } from '../port';
import type { Decide } from './card-network-service';
import { FAULTS_EXPECTED, MOST_DECLINES, type NextFault, NO_FAULTS, readFaults } from './faults';

/** What the process of the simulator reads from its environment. */
export interface CardNetworkEnvironment {
  readonly connectionString: string;
  readonly port: number;
  readonly nextFault: NextFault;
  readonly decide: Decide;
}

/**
 * Reads `DATABASE_URL`, `CARD_NETWORK_PORT` (default 0: any free one), `CARD_NETWORK_FAULTS` (default none) and
 * `CARD_NETWORK_DECLINES` (how many authorizations are declined before the first is granted; default 0). A service that
 * starts the simulator reads the same variables with its own settings, and hands on what it has read.
 *
 * @throws {OperatorError} that names every variable at fault; never the value of DATABASE_URL
 */
export function readCardNetworkEnvironment(environment: NodeJS.ProcessEnv): CardNetworkEnvironment {
  const text = (name: string): string => environment[name] ?? '';
  const faults: string[] = [];
  const wholeNumber = (name: string, most: number): number => {
    if (text(name) === '') return 0;
    const value = /^\d+$/.test(text(name)) ? Number(text(name)) : NaN;
    if (!(value <= most))
      faults.push(`${name} is ${JSON.stringify(text(name))}: expected a whole number from 0 to ${most}`);
    return value;
  };
  const connectionString = text('DATABASE_URL');
  if (connectionString === '') faults.push('DATABASE_URL: expected the URL of a database that is migrated');
  const portText = text('CARD_NETWORK_PORT') || '0';
  const port = readPort(portText) ?? NaN;
  if (Number.isNaN(port)) {
    faults.push(`CARD_NETWORK_PORT is ${JSON.stringify(portText)}: expected ${portExpected(portText)}`);
  }
  const declines = wholeNumber('CARD_NETWORK_DECLINES', MOST_DECLINES);
  const script = text('CARD_NETWORK_FAULTS');
  const nextFault = script === '' ? NO_FAULTS : readFaults(script);
  if (nextFault === undefined) {
    faults.push(`CARD_NETWORK_FAULTS is ${JSON.stringify(script)}: expected ${FAULTS_EXPECTED}`);
  }
  if (nextFault === undefined || faults.length > 0) {
    throw new OperatorError(['settings that cannot be used:', ...faults].join('\n  '));
  }
  return { connectionString, port, nextFault, decide: declineFirst(declines) };
}

/** Declines so many cards, then none. */
function declineFirst(times: number): Decide {
  let left = times;
  return () => {
    if (left === 0) return undefined;
    left -= 1;
    return 'insufficient_funds';
  };
}
