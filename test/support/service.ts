import { type App, startApp } from '../../src/app';
import { readConfig } from '../../src/config';
import { createLogger } from '../../src/ops/logger';
import type { Deliver } from '../../src/outbox/relay-options';
import { type Authorizer, createStandInAuthorizer } from '../../src/payments/authorizer';

/** What a service under test is started with. */
export interface TestServiceOptions {
  readonly connectionString: string;
  readonly descriptorSet?: Uint8Array;
  /** Default: the stand-in that says yes to everything. */
  readonly authorizer?: Authorizer;
  /** Asks the card network of `CARD_NETWORK_ADDRESS` instead. Default false. */
  readonly useNetwork?: boolean;
  /** Default: to `RECEIPTS_ADDRESS` of the environment, or to nobody. */
  readonly deliver?: Deliver;
  /** As in `startApp`. */
  readonly observeEveryMs?: number;
  /** Environment variables beside those of ports and database. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** A service in this process, on free ports, and what it logged. */
export interface TestService extends App {
  /** Its log lines so far, parsed. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** The text of `/metrics`. */
  metrics(): Promise<string>;
}

/** Starts the service on free ports. */
export async function startTestService(options: TestServiceOptions): Promise<TestService> {
  const { connectionString, descriptorSet, environment = {}, useNetwork = false, observeEveryMs } = options;
  const isAddressed = environment['RECEIPTS_ADDRESS'] !== undefined;
  const deliver = options.deliver ?? (isAddressed ? undefined : 'nobody');
  const authorizer = options.authorizer ?? (useNetwork ? undefined : createStandInAuthorizer());
  const lines: Readonly<Record<string, unknown>>[] = [];
  const logger = createLogger({
    level: 'debug',
    destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const config = readConfig({ GRPC_PORT: '0', OPS_PORT: '0', DATABASE_URL: connectionString, ...environment });
  const app = await startApp({
    ...{ config, logger },
    ...(authorizer === undefined ? {} : { authorizer }),
    ...(deliver === undefined ? {} : { deliver }),
    ...(descriptorSet === undefined ? {} : { descriptorSet }),
    ...(observeEveryMs === undefined ? {} : { observeEveryMs }),
  });
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${app.opsPort}/metrics`)).text();
  return { ...app, lines, metrics };
}
