import { Server } from '@grpc/grpc-js';
import type { Logger } from 'pino';
import type { Config } from './config';
import { connect, type Database } from './database/connect';
import { prepareSchema } from './database/prepare-schema';
import { descriptorSet as ownDescriptorSet } from './gen/descriptor-set';
import { PaymentsServiceService } from './gen/proto/payments/v1/payments';
import { drain, listen } from './grpc-server';
import {
  createDays,
  createIdempotency,
  createRequestsService,
  loadPolicies,
  openPostgresStore,
  RequestsServiceService,
  type ServerEvent,
} from './idempotency/index';
import { callerIdentity } from './identity/caller-identity';
import { isLoopback } from './loopback';
import { createGrpcMetrics } from './ops/grpc-metrics';
import { createHealth } from './ops/health';
import { startOpsServer } from './ops/http';
import { logServerEvents } from './ops/logger';
import { startMaintenance } from './ops/maintenance';
import { createMetrics } from './ops/metrics';
import { createReflection } from './ops/reflection';
import { type Authorizer, createStandInAuthorizer } from './payments/authorizer';
import { createPaymentsService } from './payments/payments-service';
import { takeExclusives } from './start-up';
import { version } from './version';

const SERVICES: readonly string[] = ['payments.v1.PaymentsService', 'idempotency.v1.RequestsService'];
const ONE_HOUR_MS = 3_600_000;
/**
 * The longest request that is taken; a longer one is RESOURCE_EXHAUSTED before anything looks at it. The largest valid
 * payment, 50 notes of 1,024 characters, stays below it in any script. The default of gRPC, 4 MiB, would let one caller
 * keep the event loop busy with decoding alone.
 */
const MAX_REQUEST_BYTES = 256 * 1024;
/** A probe of the database that takes longer than this finds it not ready. */
const READY_WITHIN_MS = 1_000;

/** What the service is put together from. */
export interface AppOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Holds the amounts of payments. Default: the stand-in that says yes to everything. */
  readonly authorizer?: Authorizer;
  /** The protos with their options, as a serialized FileDescriptorSet. Default: those of this package. */
  readonly descriptorSet?: Uint8Array;
}

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
  { config, logger, authorizer = createStandInAuthorizer(), descriptorSet = ownDescriptorSet }: AppOptions,
  onStop: (stopPart: () => Promise<void>) => void,
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
  const database = connect({
    ...{ connectionString, businessPoolSize: config.businessPoolSize, storePoolSize: config.storePoolSize },
    onError: (error) => logger.warn({ reason: error.message }, 'a database connection was lost'),
  });
  onStop(() => database.close());
  const store = await openPostgresStore({ business: database.business, records: database.store, policies: keyed });
  await createDays(database.store);
  const maintenance = startMaintenance({
    runOnce: () => createDays(database.store),
    intervalMs: ONE_HOUR_MS,
    onError: (error) => logger.error(error, 'days could not be created ahead'),
  });
  onStop(() => maintenance.stop());

  const metrics = createMetrics({ version, policies: served });
  const logEvent = logServerEvents(logger);
  const onEvent = (event: ServerEvent): void => {
    metrics.onServerEvent(event);
    logEvent(event);
  };
  const idempotency = createIdempotency({ policies, store, principal, onEvent });
  const methods = [...Object.values(PaymentsServiceService), ...Object.values(RequestsServiceService)];
  const server = new Server({
    interceptors: [createGrpcMetrics(metrics.registry, methods), idempotency.interceptor],
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
  });
  idempotency.addService(
    server,
    PaymentsServiceService,
    createPaymentsService({
      ...{ prisma: database.business, authorizer, onPaymentCreated: metrics.onPaymentCreated },
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
    ready: async () => ready.now && (await answers(database)),
  });
  onStop(() => ops.close());
  const grpcPort = await listen(server, config.grpcHost, config.grpcPort);
  onStop(() => {
    ready.now = false;
    health.setServing(false);
    return drain(server, () => idempotency.idle(), config.shutdownGraceMs);
  });
  // A start that is refused has nothing else to say.
  for (const warning of warnings) logger.warn(warning);
  ready.now = true;
  health.setServing(true);
  return { grpcPort, opsPort: ops.port };
}

/** Whether the database answers soon enough to serve calls. */
async function answers({ store }: Database): Promise<boolean> {
  const asked = store.$queryRaw`SELECT 1`.then(
    () => true,
    () => false,
  );
  const late = new Promise<false>((resolve) => setTimeout(resolve, READY_WITHIN_MS, false).unref());
  return Promise.race([asked, late]);
}
