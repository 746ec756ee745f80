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
  type Idempotency,
  type IdempotencyStore,
  loadPolicies,
  openPostgresStore,
  type Principal,
  RequestsServiceService,
  type ServerEvent,
  type UnaryHandlers,
} from '../../src/idempotency/index';
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
  /** Serves RequestsService too. Default false. */
  readonly withRequests?: boolean;
  /** Puts the server together. Default: interceptor and service, as they belong together. */
  /** Listens after `events`; may throw. */
  readonly onEvent?: (event: ServerEvent) => void;
  readonly assemble?: (idempotency: Idempotency<Tx>, handlers: PaymentHandlers) => Server;
}

/** A real server whose handlers a test gives, on a database of its own. */
export interface AttemptService {
  readonly port: number;
  readonly database: TestDatabase;
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
  const database = await createTestDatabase();
  // Payments are effects to count here, and no rule of the business is to hide one.
  await database.rows('DROP INDEX payments_one_live_per_order');
  const connections = connect({ connectionString: database.connectionString });
  const policies = loadPolicies(descriptorSet);
  const { business, store: records } = connections;
  const store = wrapStore(await openPostgresStore({ business, records, policies: policies.all() }));
  await createDays(records);
  const events: ServerEvent[] = [];
  const onEvent = (event: ServerEvent): void => {
    events.push(event);
    options.onEvent?.(event);
  };
  const idempotency = createIdempotency({ policies, store, principal, onEvent });
  let current: PaymentHandlers = {};
  const unhandled = () => Promise.reject(new Error('this test gave no such handler'));
  const server = (options.assemble ?? assembled)(idempotency, {
    createPayment: (request, attempt) => (current.createPayment ?? unhandled)(request, attempt),
    getPayment: (request, attempt) => (current.getPayment ?? unhandled)(request, attempt),
    listPayments: (request, attempt) => (current.listPayments ?? unhandled)(request, attempt),
    updatePayment: (request, attempt) => (current.updatePayment ?? unhandled)(request, attempt),
    cancelPayment: (request, attempt) => (current.cancelPayment ?? unhandled)(request, attempt),
  });
  if (options.withRequests === true) {
    idempotency.addService(server, RequestsServiceService, createRequestsService({ policies: policies.all(), store }));
  }
  const port = await listenOnLoopback(server);
  const client = createStockClient(port);
  return {
    ...{ port, database, connections, client, events },
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
