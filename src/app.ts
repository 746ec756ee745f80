import { credentials, Server } from '@grpc/grpc-js';
import type { Logger } from 'pino';
import type { Config } from './config';
import { answersWithin } from './database/answers-within';
import { connect, type Database, POOL_NAMES } from './database/connect';
import { prepareSchema } from './database/prepare-schema';
import { descriptorSet as ownDescriptorSet } from './gen/descriptor-set';
import { PaymentsServiceService } from './gen/proto/payments/v1/payments';
import { drain, listen } from './grpc-server';
import { endsWithin } from './ends-within';
import {
  type ClientEventListener,
  createDaysIfAllowed,
  createIdempotency,
  createRequestsService,
  type IdempotencyStore,
  loadPolicies,
  observeRetention,
  openPostgresStore,
  type PostgresStoreOptions,
  RequestsServiceService,
  runRetention,
  type SqlClient,
  UnusableDatabaseError,
} from './idempotency/index';
import { callerIdentity } from './identity/caller-identity';
import { isLoopback } from './loopback';
import { both } from './ops/both';
import { createClientMetrics } from './ops/client-metrics';
import { createGrpcMetrics } from './ops/grpc-metrics';
import { createHealth } from './ops/health';
import { startOpsServer } from './ops/http';
import { logServerEvents } from './ops/logger';
import { startMaintenance } from './ops/maintenance';
import { createMetrics } from './ops/metrics';
import { logRelayEvents } from './ops/outbox-log';
import { createOutboxMetrics } from './ops/outbox-metrics';
import { logReconciliationEvents } from './ops/reconciliation-log';
import { createPoolMetrics } from './ops/pool-metrics';
import { createReconciliationMetrics } from './ops/reconciliation-metrics';
import { createReflection } from './ops/reflection';
import { logRetentionEvents } from './ops/retention-log';
import { createRetentionMetrics } from './ops/retention-metrics';
import { createOutbox } from './outbox/outbox';
import { createRelay, type Relay } from './outbox/relay';
import type { RelayEvent, RelayEventListener } from './outbox/relay-events';
import type { Deliver } from './outbox/relay-options';
import type { Authorizer } from './payments/authorizer';
import { createRefundDelivery } from './payments/deliver-refund';
import { createNetworkAuthorizer } from './payments/network-authorizer';
import { createPaymentsService } from './payments/payments-service';
import { refundTermsOf } from './payments/refund-event';
import { createReceiptDelivery } from './receipts/deliver-receipt';
import { createReceiptsClient } from './receipts/receipts-client';
import type { ReconciliationEvent } from './reconciliation/events';
import { FINDING_KINDS } from './reconciliation/findings';
import { startReconciliationJob } from './reconciliation/reconciliation-job';
import { createSimulators } from './simulators';
import { StartRefused, takeExclusives } from './start-up';
import { version } from './version';

const SERVICES: readonly string[] = ['payments.v1.PaymentsService', 'idempotency.v1.RequestsService'];
/** How often retention runs, and how soon after the start for the first time. */
const RETENTION = { intervalMs: 3_600_000, firstAfterMs: 5_000 };
/** How often the records are looked at, which is far more often than anything is dropped: an alert waits for it. */
const OBSERVE_EVERY_MS = 15_000;
/** Looks take a hundredth of the time at most, however slow the database is. */
const OBSERVE_REST_FACTOR = 99;
/**
 * The longest request that is taken; a longer one is RESOURCE_EXHAUSTED before anything looks at it. The largest valid
 * payment, 50 notes of 1,024 characters, stays below it in any script. The default of gRPC, 4 MiB, would let one caller
 * keep the event loop busy with decoding alone.
 */
const MAX_REQUEST_BYTES = 256 * 1024;
/** A probe of the database that takes longer than this finds it not ready. */
const READY_WITHIN_MS = 1_000;
/** How long a stop waits for the deliveries under way: one whose outcome is not noted comes again, under its id. */
const RELAY_STOPS_WITHIN_MS = 500;

/** What the service is put together from. */
export interface AppOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Holds the amounts of payments. Default: the card network of the config, or a simulator that is started with the app. */
  readonly authorizer?: Authorizer;
  /**
   * Carries the events of the outbox to whom they are for, but for refunds, which the authorizer is asked for; `nobody`:
   * all wait. Default: to the receipts service of the config, or to a simulator that is started with the app.
   */
  readonly deliver?: Deliver | 'nobody';
  /** The protos with their options, as a serialized FileDescriptorSet. Default: those of this package. */
  readonly descriptorSet?: Uint8Array;
  /** How often the service looks how its records stand, for the metrics; milliseconds. Default 15,000, as scrapes are made. */
  readonly observeEveryMs?: number;
  /** Told where the embedded database ends by itself, with the path of its log: the service is of no use then. Default: nobody. */
  readonly onDatabaseEnded?: (log: string) => void;
}

/** Keeps how a part that was started is stopped. */
type OnStop = (stopPart: () => Promise<void>) => void;

/** A running service. */
export interface App {
  readonly grpcPort: number;
  readonly opsPort: number;
  /** Finishes running calls and their completions within the grace, then lets go of the database. */
  stop(): Promise<void>;
}

/**
 * Puts the parts together and starts them, the database first. The only file that knows them all.
 *
 * @throws StartRefused, MigrationRefused, AccountFileError, or what the database said; everything that was started is then
 *   stopped again
 */
export async function startApp(options: AppOptions): Promise<App> {
  /** What has been started, stopped in the opposite order. */
  const started: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    const failures: unknown[] = [];
    // One part that can't be stopped must not leave the others running.
    for (const stopPart of started.splice(0).reverse())
      await stopPart().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'parts of the service could not be stopped');
  };
  try {
    const ports = await startParts(options, (stopPart) => started.push(stopPart));
    return { ...ports, stop };
  } catch (error) {
    await stop().catch((failure: unknown) => options.logger.error(failure, 'a failed start could not be undone'));
    throw error;
  }
}

async function startParts(options: AppOptions, onStop: OnStop): Promise<Pick<App, 'grpcPort' | 'opsPort'>> {
  const { config, logger, authorizer: given, deliver: delivering } = options;
  const { descriptorSet = ownDescriptorSet, observeEveryMs = OBSERVE_EVERY_MS } = options;
  const policies = loadPolicies(descriptorSet);
  const served = policies.all().filter(({ service }) => SERVICES.includes(service));
  const keyed = served.filter(({ key }) => key !== 'IGNORED');
  const reachable = !isLoopback(config.grpcHost);
  const { principal, warnings } = callerIdentity({ tokensFile: config.authTokensFile, reachable });

  const { onDatabaseEnded: onEnded } = options;
  const embedded = await takeExclusives(config, { onLog: (line) => logger.info(line), onEnded });
  if (embedded !== undefined) onStop(() => embedded.stop());
  const connectionString = config.databaseUrl ?? embedded?.connectionString ?? '';
  await prepareSchema(config.migrate, { connectionString });
  const metrics = createMetrics({ version, policies: served, clientVersions: config.clientVersions ?? [] });
  const database = connect({
    ...{ connectionString, businessPoolSize: config.businessPoolSize, storePoolSize: config.storePoolSize },
    onError: (error) => logger.warn({ reason: error.message }, 'a database connection was lost'),
    onPoolWait: createPoolMetrics(metrics.registry, POOL_NAMES),
  });
  const { cardNetworkPort: port, cardNetworkFaults: faults, cardNetworkDeclines: declines } = config;
  const simulators = createSimulators({
    ...{ connectionString, logger, cardNetwork: { port, faults, declines }, receipts: { port: config.receiptsPort } },
  });
  onStop(async () => {
    await Promise.all([database.close(), simulators.stop()]);
  });
  const [networkAddress, receiptsAddress] = await Promise.all([
    given === undefined ? (config.cardNetworkAddress ?? simulators.startCardNetwork()) : '',
    delivering === undefined ? (config.receiptsAddress ?? simulators.startReceipts()) : '',
  ]);
  const onClientEvent = createClientMetrics(metrics.registry);
  const authorizer = given ?? reachCardNetwork(networkAddress, onClientEvent, onStop);
  const deliver = delivering ?? reachReceipts(receiptsAddress, onClientEvent, onStop);
  const store = await openStore({ business: database.transactions, records: database.store, policies: keyed });

  const onEvent = both(metrics.onServerEvent, logServerEvents(logger));
  const onRetentionEvent = both(createRetentionMetrics(metrics.registry), logRetentionEvents(logger));
  // Before the first call: keys of today need their day.
  await createDaysIfAllowed(database.maintenance, onRetentionEvent);
  const maintenance = startMaintenance({
    ...RETENTION,
    runOnce: (signal) => runRetention({ client: database.maintenance, onEvent: onRetentionEvent, signal }),
    onError: (error) => logger.error(error, 'a round of retention could not be run'),
  });
  const observing = startMaintenance({
    ...{ intervalMs: observeEveryMs, firstAfterMs: Math.min(observeEveryMs, RETENTION.firstAfterMs) },
    restFactor: OBSERVE_REST_FACTOR,
    runOnce: () => observeRetention(database.maintenance, onRetentionEvent),
    onError: (error) =>
      logger.warn(error, 'the records could not be looked at; the metrics show how they stood before'),
  });
  const background: { stop(): Promise<void> }[] = [maintenance, observing];
  let backgroundStops: Promise<unknown> | undefined;
  const stopBackground = async (): Promise<void> => {
    await (backgroundStops ??= Promise.all(background.map((part) => part.stop())));
  };
  onStop(stopBackground);

  const countReconciliation = createReconciliationMetrics(metrics.registry, FINDING_KINDS);
  if (config.reconcileIntervalMs > 0 && networkAddress !== '') {
    const job = await startReconciliationJob({
      ...{ prisma: database.business, records: database.store, networkAddress, intervalMs: config.reconcileIntervalMs },
      onEvent: both<ReconciliationEvent>(countReconciliation, logReconciliationEvents(logger)),
      onError: (error) => logger.error(error, 'our books could not be compared with those of the card network'),
    });
    background.push(job);
  }

  const relay = startRelay({
    deliver: deliver === 'nobody' ? deliver : createRefundDelivery({ prisma: database.business, authorizer }, deliver),
    ...{ database, onStop },
    onEvent: both<RelayEvent>(createOutboxMetrics(metrics.registry).onRelayEvent, logRelayEvents(logger)),
  });
  const outbox = createOutbox(relay === undefined ? {} : { onAdded: () => relay.wake() });
  const idempotency = createIdempotency({
    ...{ policies, store, principal, onEvent, clientVersions: config.clientVersions ?? [] },
  });
  const methods = [...Object.values(PaymentsServiceService), ...Object.values(RequestsServiceService)];
  const server = new Server({
    interceptors: [createGrpcMetrics(metrics.registry, methods), idempotency.interceptor],
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
  });
  idempotency.addService(
    server,
    PaymentsServiceService,
    createPaymentsService({
      ...{ prisma: database.business, authorizer, outbox, onPaymentCreated: metrics.onPaymentCreated },
    }),
  );
  idempotency.addService(server, RequestsServiceService, createRequestsService({ policies: keyed, store }));
  const health = createHealth(SERVICES);
  health.addTo(server);
  createReflection({ descriptorSet, services: SERVICES }).addTo(server);

  const ready = { now: false };
  const ops = await startOpsServer({
    ...{ host: config.opsHost, port: config.opsPort, metrics: metrics.registry },
    onError: (error) => logger.error(error, 'a probe or the metrics could not be answered'),
    ready: async () => ready.now && (await answersWithin(READY_WITHIN_MS, database.store)),
  });
  onStop(() => ops.close());
  const grpcPort = await listen(server, config.grpcHost, config.grpcPort);
  const completer = idempotency.createCompleter({ everyMs: Math.max(1, config.resumeIntervalMs) });
  onStop(async () => {
    ready.now = false;
    health.setServing(false);
    // Beside the calls: a round that gets no answer is not to be waited for after them.
    const stops = stopBackground();
    const completerStops = completer.stop();
    const idle = async (): Promise<void> => {
      // What a look has still taken up is a running attempt like any other.
      await completerStops;
      await idempotency.idle();
    };
    await drain(server, idle, config.shutdownGraceMs);
    await Promise.all([idempotency.abandon(), stops]);
  });
  if (config.resumeIntervalMs > 0) completer.start();
  // A start that is refused has nothing else to say.
  for (const warning of warnings) logger.warn(warning);
  ready.now = true;
  health.setServing(true);
  return { grpcPort, opsPort: ops.port };
}

function reachCardNetwork(address: string, onEvent: ClientEventListener, onStop: OnStop): Authorizer {
  const authorizer = createNetworkAuthorizer({ address, onEvent });
  onStop(async () => authorizer.close());
  return authorizer;
}

function reachReceipts(address: string, onEvent: ClientEventListener, onStop: OnStop): Deliver {
  const receipts = createReceiptsClient(address, { credentials: credentials.createInsecure(), onEvent });
  onStop(async () => receipts.close());
  return createReceiptDelivery(receipts);
}

/** What carries the outbox. */
interface Carrying {
  readonly deliver: Deliver | 'nobody';
  readonly database: Database;
  readonly onEvent: RelayEventListener;
  readonly onStop: OnStop;
}

/** Carries the outbox to those it is for; undefined where that is nobody. */
function startRelay({ deliver, database, onEvent, onStop }: Carrying): Relay | undefined {
  if (deliver === 'nobody') return undefined;
  const relay = createRelay({ client: database.business, deliver, onEvent, termsOf: refundTermsOf });
  relay.start();
  onStop(async () => {
    await endsWithin(RELAY_STOPS_WITHIN_MS, relay.stop());
  });
  return relay;
}

/** Opens the store; a database that can't be used is the operator's to repair. */
async function openStore<Tx extends SqlClient>(options: PostgresStoreOptions<Tx>): Promise<IdempotencyStore<Tx>> {
  try {
    return await openPostgresStore(options);
  } catch (error) {
    throw error instanceof UnusableDatabaseError ? new StartRefused([error.message]) : error;
  }
}
