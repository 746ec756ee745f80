import { randomUUID } from 'node:crypto';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { connect, type Database } from '../../src/database/connect';
import { descriptorSet as ownDescriptorSet } from '../../src/gen/descriptor-set';
import type { Prisma } from '../../src/gen/prisma/client';
import {
  type CreatePaymentRequest,
  type CreatePaymentResponse,
  PaymentsServiceService,
} from '../../src/gen/proto/payments/v1/payments';
import {
  type Attempt,
  createDays,
  createIdempotency,
  createRequestsService,
  type Handler,
  type Idempotency,
  type IdempotencyOptions,
  type IdempotencyStore,
  loadPolicies,
  type MethodPolicy,
  openPostgresStore,
  type PolicyRegistry,
  type Principal,
  type Rebuild,
  RequestsServiceService,
  type ServerEvent,
  type UnaryHandlers,
} from '../../src/idempotency/index';
import { handlerParts } from '../../src/idempotency/server/handler';
import { paymentMessage } from '../../src/payments/payment-message';
import { insertPaymentIfUnpaid } from '../../src/payments/payment-repository';
import { paymentRequest } from './payment-requests';
import { createTestDatabase, type TestDatabase } from './postgres';
import { createStockClient, type StockAnswer, type StockCall, type StockClient } from './stock-client';

type Tx = Prisma.TransactionClient;
export type PaymentAttempt = Attempt<Tx, CreatePaymentResponse>;
export type PaymentHandlers = UnaryHandlers<typeof PaymentsServiceService, Tx>;

/** What a service of handlers under test is started with. */
export interface AttemptServiceOptions {
  /** Default: everybody is `account-1`. */
  readonly principal?: Principal;
  /** Default: this package's own. */
  readonly descriptorSet?: Uint8Array;
  /** Changes what the server sees of the store. */
  readonly wrapStore?: (store: IdempotencyStore<Tx>) => IdempotencyStore<Tx>;
  /** Changes the policy of CreatePayment. */
  readonly policy?: Partial<MethodPolicy>;
  /** Makes answers of CreatePayment anew, for `recording: COMPACT`. */
  readonly rebuildPayment?: Rebuild<CreatePaymentResponse>;
  /** Where the service finds the database of the test. Default: directly. */
  readonly route?: (database: TestDatabase) => Promise<string>;
  /** Default: one in the cluster of the run. */
  readonly database?: TestDatabase;
  /** Sizes of the pools of the service. Default: those of `connect`. */
  readonly pools?: { readonly businessPoolSize?: number; readonly storePoolSize?: number };
  readonly server?: Pick<IdempotencyOptions<Tx>, 'mostAttempts' | 'mostWaiting' | 'clientVersions'>;
  /** Serves RequestsService too. Default false. */
  readonly withRequests?: boolean;
  /** Listens after `events`; may throw. */
  readonly onEvent?: (event: ServerEvent) => void;
  /** Puts the server together. Default: interceptor and service, as they belong together. */
  readonly assemble?: (
    idempotency: Idempotency<Tx>,
    handlers: UnaryHandlers<typeof PaymentsServiceService, Tx>,
  ) => Server;
}

/** A real server whose handlers a test gives, on a database of its own. */
export interface AttemptService {
  readonly port: number;
  readonly database: TestDatabase;
  readonly idempotency: Idempotency<Tx>;
  readonly connections: Database;
  readonly client: StockClient;
  /** What the library has told its listener since the handlers were given. */
  readonly events: ServerEvent[];
  /** Gives the handlers of the next calls. */
  handle(handlers: PaymentHandlers): void;
  /** Calls CreatePayment, with a new key unless the test gives one. */
  pay(call?: Partial<StockCall>): Promise<StockAnswer>;
  stop(): Promise<void>;
}

/** Starts a server on a free port. Call `stop` in `afterAll`. */
export async function startAttemptService(options: AttemptServiceOptions = {}): Promise<AttemptService> {
  const { principal = () => 'account-1', descriptorSet = ownDescriptorSet, wrapStore = (store) => store } = options;
  const { database = await createTestDatabase(), route = async ({ connectionString }) => connectionString } = options;
  // Payments are effects to count here, and no rule of the business is to hide one.
  await database.rows('DROP INDEX IF EXISTS payments_one_live_per_order');
  const connections = connect({ connectionString: await route(database), ...options.pools });
  const policies = changed(loadPolicies(descriptorSet), options.policy ?? {});
  const { transactions, store: records } = connections;
  const store = wrapStore(await openPostgresStore({ business: transactions, records, policies: policies.all() }));
  await createDays(records);
  const events: ServerEvent[] = [];
  const onEvent = (event: ServerEvent): void => {
    events.push(event);
    options.onEvent?.(event);
  };
  const idempotency = createIdempotency({ policies, store, principal, onEvent, ...options.server });
  let current: PaymentHandlers = {};
  const unhandled = () => Promise.reject(new Error('this test gave no such handler'));
  const createPayment: Handler<Tx, CreatePaymentRequest, CreatePaymentResponse> = (request, attempt) =>
    handlerParts(current.createPayment ?? unhandled).handle(request, attempt);
  const server = (options.assemble ?? assembled)(idempotency, {
    createPayment:
      options.rebuildPayment === undefined ? createPayment : { handle: createPayment, rebuild: options.rebuildPayment },
    getPayment: (request, attempt) => handlerParts(current.getPayment ?? unhandled).handle(request, attempt),
    listPayments: (request, attempt) => handlerParts(current.listPayments ?? unhandled).handle(request, attempt),
    updatePayment: (request, attempt) => handlerParts(current.updatePayment ?? unhandled).handle(request, attempt),
    cancelPayment: (request, attempt) => handlerParts(current.cancelPayment ?? unhandled).handle(request, attempt),
    refundPayment: (request, attempt) => handlerParts(current.refundPayment ?? unhandled).handle(request, attempt),
  });
  if (options.withRequests === true) {
    idempotency.addService(server, RequestsServiceService, createRequestsService({ policies: policies.all(), store }));
  }
  const port = await listenOnLoopback(server);
  const client = createStockClient(port);
  return {
    ...{ port, database, connections, client, events, idempotency },
    handle: (handlers) => {
      events.length = 0;
      current = handlers;
    },
    pay: (call = {}) =>
      client.call({
        method: 'CreatePayment',
        request: paymentRequest({ order_id: 'order-1' }),
        requestId: randomUUID(),
        ...call,
      }),
    stop: async () => {
      client.close();
      server.forceShutdown();
      await idempotency.idle();
      await connections.close();
      await database.drop();
    },
  };
}

/** The registry with another policy of CreatePayment. */
function changed(policies: PolicyRegistry, change: Partial<MethodPolicy>): PolicyRegistry {
  const all = policies.all().map((policy) => (policy.method === 'CreatePayment' ? { ...policy, ...change } : policy));
  const byPath = new Map(all.map((policy) => [policy.path, policy]));
  return { get: (path) => byPath.get(path), all: () => all };
}

/** Writes the payment that was asked for. */
export async function recordPayment(tx: Tx, request: CreatePaymentRequest, attempt: { readonly scope: string }) {
  const { orderId, amountMinor, currency, paymentMethod, metadata } = request;
  const { scope } = attempt;
  const payment = await insertPaymentIfUnpaid(tx, {
    ...{ scope, orderId, amountMinor, currency, paymentMethod, metadata },
    ...{ requestId: undefined, authorizationId: 'authorization-1' },
  });
  if (payment === undefined) throw new Error('not written');
  return { payment: paymentMessage(payment) };
}

/** A handler that pays and answers as it should. */
export const payAndComplete = (request: CreatePaymentRequest, attempt: PaymentAttempt) =>
  attempt.complete((tx) => recordPayment(tx, request, attempt));

/** Everything that an answer tells its caller, as one text; what every HTTP/2 answer carries is left out. */
export function toldText({ details, trailers }: StockAnswer): string {
  const told = Object.entries(trailers.getMap()).filter(([name]) => name !== 'content-type' && name !== 'date');
  return [details, ...told.map(([, value]) => Buffer.from(value).toString('latin1'))].join('\n');
}

/** The server as a service puts it together. */
export function assembled(idempotency: Idempotency<Tx>, handlers: PaymentHandlers): Server {
  const server = new Server({ interceptors: [idempotency.interceptor] });
  idempotency.addService(server, PaymentsServiceService, handlers);
  return server;
}

function listenOnLoopback(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}
