import { Server } from '@grpc/grpc-js';
import { connect } from '../database/connect';
import { descriptorSet } from '../gen/descriptor-set';
import { CardNetworkServiceService } from '../gen/proto/cardnetwork/v1/cardnetwork';
import { drain, listen } from '../grpc-server';
import {
  createDaysIfAllowed,
  createIdempotency,
  loadPolicies,
  openPostgresStore,
  type ServerEvent,
} from '../idempotency/index';
import { createCardNetworkService, type Decide } from './card-network-service';
import { createFaultInterceptor } from './fault-interceptor';
import { type NextFault, NO_FAULTS } from './faults';

const SERVICE = 'cardnetwork.v1.CardNetworkService';
/** Only this machine reaches the simulator: it asks nobody who they are. */
export const CARD_NETWORK_HOST = '127.0.0.1';
/** How long running calls may take to finish at a stop, milliseconds. */
const GRACE_MS = 2_000;

/** A call that has arrived at the simulator. */
export interface NetworkCall {
  /** Name of the method: `Authorize`, `Refund`. */
  readonly method: string;
}

/** What the simulated card network is put together from. */
export interface CardNetworkOptions {
  /** A database that is migrated. */
  readonly connectionString: string;
  /** On 127.0.0.1. Default 0: any free one. */
  readonly port?: number;
  /** Which cards are declined, and why. Default: none. */
  readonly decide?: Decide;
  /** What goes wrong with each Authorize and Refund in turn, replays included. Default: nothing. */
  readonly nextFault?: NextFault;
  /** Ends the process, for faults that say so. Default: SIGKILL to itself. */
  readonly crash?: () => void;
  /** Told of each Authorize and Refund that arrives. Default: nobody. */
  readonly onCall?: (call: NetworkCall) => void;
  /** Told what the protection of the simulator saw. Default: nobody. */
  readonly onEvent?: (event: ServerEvent) => void;
}

/** A running simulator. */
export interface CardNetwork {
  /** `127.0.0.1:<port>`. */
  readonly address: string;
  /** Lets running calls end, then lets go of the database. */
  stop(): Promise<void>;
}

/** The account of all callers: the payments service is the only one. */
const MERCHANT = 'payments';

/**
 * Starts the simulated card network: a service of its own, protected by this library as a real acquirer protects itself,
 * with its own tables. Where its callers use the same database, they meet in the record of keys alone, under another
 * account and other methods.
 */
export async function startCardNetwork(options: CardNetworkOptions): Promise<CardNetwork> {
  const { connectionString, port = 0, decide = () => undefined, nextFault = NO_FAULTS, onEvent, onCall } = options;
  const { crash = () => process.kill(process.pid, 'SIGKILL') } = options;
  const database = connect({ connectionString, onError: () => undefined });
  try {
    const policies = loadPolicies(descriptorSet);
    const keyed = policies.all().filter(({ service, key }) => service === SERVICE && key !== 'IGNORED');
    const store = await openPostgresStore({
      business: database.transactions,
      records: database.store,
      policies: keyed,
    });
    await createDaysIfAllowed(database.maintenance, () => undefined);
    const idempotency = createIdempotency({
      ...{ policies, store, principal: () => MERCHANT },
      ...(onEvent === undefined ? {} : { onEvent }),
    });
    const methods = new Map(keyed.map(({ path, method }) => [path, method]));
    const faults = createFaultInterceptor({
      crash,
      nextFault: (path) => {
        const method = methods.get(path);
        if (method === undefined) return { kind: 'ok' };
        onCall?.({ method });
        return nextFault();
      },
    });
    const server = new Server({ interceptors: [faults, idempotency.interceptor] });
    idempotency.addService(
      server,
      CardNetworkServiceService,
      createCardNetworkService({ prisma: database.business, decide }),
    );
    const bound = await listen(server, CARD_NETWORK_HOST, port);
    return {
      address: `${CARD_NETWORK_HOST}:${bound}`,
      stop: async () => {
        await drain(server, () => idempotency.idle(), GRACE_MS);
        await idempotency.abandon().catch(() => undefined);
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}
