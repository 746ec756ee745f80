import { Server } from '@grpc/grpc-js';
import { connect } from '../database/connect';
import { descriptorSet } from '../gen/descriptor-set';
import { ReceiptsServiceService } from '../gen/proto/receipts/v1/receipts';
import { drain, listen } from '../grpc-server';
import {
  createDaysIfAllowed,
  createIdempotency,
  loadPolicies,
  openPostgresStore,
  type Principal,
  runRetention,
  type ServerEventListener,
} from '../idempotency/index';
import { createHealth } from '../ops/health';
import { startMaintenance } from '../ops/maintenance';
import { createReceiptsHandlers } from './send-receipt';

const SERVICE = 'receipts.v1.ReceiptsService';
const RETENTION = { intervalMs: 3_600_000, firstAfterMs: 5_000 };
/** A receipt is short. */
const MAX_REQUEST_BYTES = 64 * 1024;

/** What the receipts service is put together from. */
export interface ReceiptsOptions {
  /** A migrated database; its own, or that of payments: they share no table but the record of keys. */
  readonly connectionString: string;
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly principal: Principal;
  /** How long running calls may take to finish at a stop, milliseconds. Default 30,000. */
  readonly shutdownGraceMs?: number;
  /** Told what happens. Default: nobody. */
  readonly onEvent?: ServerEventListener;
  /** Told of lost connections and failed retention. Default: nobody. */
  readonly onError?: (error: unknown, what: string) => void;
}

/** A running receipts service. */
export interface Receipts {
  readonly port: number;
  /** Where it listens, with its port. */
  readonly address: string;
  /** Finishes running calls within the grace, then lets go of the database. */
  stop(): Promise<void>;
}

/** Starts the receipts service: a simulator of a mail service, protected like any other service. */
export async function startReceipts(options: ReceiptsOptions): Promise<Receipts> {
  const { connectionString, host, port, principal, onEvent, onError = () => undefined } = options;
  const policies = loadPolicies(descriptorSet);
  const own = policies.all().filter(({ service }) => service === SERVICE);
  const database = connect({ connectionString, onError: (error) => onError(error, 'a database connection was lost') });
  try {
    const { transactions, store: records, maintenance: client } = database;
    const store = await openPostgresStore({ business: transactions, records, policies: own });
    // Before the first call: keys of today need their day.
    await createDaysIfAllowed(client, () => undefined);
    const idempotency = createIdempotency({
      policies,
      store,
      principal,
      ...(onEvent === undefined ? {} : { onEvent }),
    });
    const server = new Server({
      interceptors: [idempotency.interceptor],
      'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    });
    idempotency.addService(server, ReceiptsServiceService, createReceiptsHandlers());
    const health = createHealth([SERVICE]);
    health.addTo(server);
    const bound = await listen(server, host, port);
    const maintenance = startMaintenance({
      ...RETENTION,
      runOnce: (signal) => runRetention({ client, onEvent: () => undefined, signal }),
      onError: (error) => onError(error, 'a round of retention could not be run'),
    });
    health.setServing(true);
    const stop = async (): Promise<void> => {
      health.setServing(false);
      await drain(server, () => idempotency.idle(), options.shutdownGraceMs ?? 30_000);
      await idempotency.abandon().catch((error: unknown) => onError(error, 'leases could not be ended early'));
      await maintenance.stop();
      await database.close();
    };
    let stopping: Promise<void> | undefined;
    return { port: bound, address: `${host}:${bound}`, stop: () => (stopping ??= stop()) };
  } catch (error) {
    await database.close();
    throw error;
  }
}
