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
  createDaysIfAllowed,
  createIdempotency,
  createRequestsService,
  type IdempotencyStore,
  loadPolicies,
  openPostgresStore,
  type PostgresStoreOptions,
  RequestsServiceService,
  type RetentionEvent,
  runRetention,
  type ServerEvent,
  type SqlClient,
  UnusableDatabaseError,
} from './idempotency/index';
import { callerIdentity } from './identity/caller-identity';
import { isLoopback } from './loopback';
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
import type { RelayEventListener } from './outbox/relay-events';
import type { Deliver } from './outbox/relay-options';
import type { Authorizer } from './payments/authorizer';
import { createRefundDelivery } from './payments/deliver-refund';
import { createNetworkAuthorizer } from './payments/network-authorizer';
import { createPaymentsService } from './payments/payments-service';
import { refundTermsOf } from './payments/refund-event';
import { createReceiptDelivery } from './receipts/deliver-receipt';
import { createReceiptsClient } from './receipts/receipts-client';
import { FINDING_KINDS } from './reconciliation/findings';
import { startReconciliationJob } from './reconciliation/reconciliation-job';
import { createSimulators } from './simulators';
import { StartRefused, takeExclusives } from './start-up';
import { version } from './version';

const SERVICES: readonly string[] = ['payments.v1.PaymentsService', 'idempotency.v1.RequestsService'];
/** How often retention runs, and how soon after the start for the first time. */
const RETENTION = { intervalMs: 3_600_000, firstAfterMs: 5_000 };
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

async function startParts(
  { config, logger, authorizer: given, deliver: delivering, descriptorSet = ownDescriptorSet }: AppOptions,
  onStop: OnStop,
): Promise<Pick<App, 'grpcPort' | 'opsPort'>> {
  const policies = loadPolicies(descriptorSet);
  const served = policies.all().filter(({ service }) => SERVICES.includes(service));
  const keyed = served.filter(({ key }) => key !== 'IGNORED');
  const reachable = !isLoopback(config.grpcHost);
  const { principal, warnings } = callerIdentity({ tokensFile: config.authTokensFile, reachable });

  const embedded = await takeExclusives(config, (line) => logger.info(line));
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
  const authorizer = given ?? reachCardNetwork(networkAddress, onStop);
  const deliver = delivering ?? reachReceipts(receiptsAddress, onStop);
  const store = await openStore({ business: database.transactions, records: database.store, policies: keyed });

  const logEvent = logServerEvents(logger);
  const onEvent = (event: ServerEvent): void => {
    metrics.onServerEvent(event);
    logEvent(event);
  };
  const countRetention = createRetentionMetrics(metrics.registry);
  const logRetention = logRetentionEvents(logger);
  const onRetentionEvent = (event: RetentionEvent): void => {
    countRetention(event);
    logRetention(event);
  };
  // Before the first call: keys of today need their day.
  await createDaysIfAllowed(database.maintenance, onRetentionEvent);
  const maintenance = startMaintenance({
    ...RETENTION,
    runOnce: (signal) => runRetention({ client: database.maintenance, onEvent: onRetentionEvent, signal }),
    onError: (error) => logger.error(error, 'a round of retention could not be run'),
  });
  const background: { stop(): Promise<void> }[] = [maintenance];
  let backgroundStops: Promise<unknown> | undefined;
  const stopBackground = async (): Promise<void> => {
    await (backgroundStops ??= Promise.all(background.map((part) => part.stop())));
  };
  onStop(stopBackground);

  if (config.reconcileIntervalMs > 0 && networkAddress !== '') {
    const count = createReconciliationMetrics(metrics.registry, FINDING_KINDS);
    const log = logReconciliationEvents(logger);
    const job = await startReconciliationJob({
      ...{ prisma: database.business, records: database.store, networkAddress, intervalMs: config.reconcileIntervalMs },
      onEvent: (event) => {
        count(event);
        log(event);
      },
      onError: (error) => logger.error(error, 'our books could not be compared with those of the card network'),
    });
    background.push(job);
  }

  const countRelay = createOutboxMetrics(metrics.registry).onRelayEvent;
  const logRelay = logRelayEvents(logger);
  const relay = startRelay({
    deliver: deliver === 'nobody' ? deliver : createRefundDelivery({ prisma: database.business, authorizer }, deliver),
    ...{ database, onStop },
    onEvent: (event) => {
      countRelay(event);
      logRelay(event);
    },
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

function reachCardNetwork(address: string, onStop: OnStop): Authorizer {
  const authorizer = createNetworkAuthorizer({ address });
  onStop(async () => authorizer.close());
  return authorizer;
}

function reachReceipts(address: string, onStop: OnStop): Deliver {
  const receipts = createReceiptsClient(address, { credentials: credentials.createInsecure() });
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
