import { credentials, type Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js';
import {
  type CreatePaymentRequest,
  PaymentsServiceService,
  type PaymentsServiceServer,
} from '../../src/gen/proto/payments/v1/payments';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';

/** A payment that shows what an encoder may lose: a number beyond 2^53, a map, a field that is left out. */
export const REQUEST: CreatePaymentRequest = {
  orderId: 'order-1',
  amountMinor: 9_007_199_254_740_993n,
  currency: 'EUR',
  paymentMethod: 'card-1',
  metadata: { note: 'first' },
  clientSentAt: undefined,
};

/** The same for an order that is never answered. */
export const HANGING: CreatePaymentRequest = { ...REQUEST, orderId: 'hang' };

/** A CreatePayment that reached the server. */
export interface Created {
  readonly request: CreatePaymentRequest;
  readonly metadata: Metadata;
}

/** A server of PaymentsService that pays nothing and counts, and a client of it; both anew for each test. */
export interface CountingPayments {
  readonly address: string;
  readonly client: PaymentsClient;
  /** Every attempt to pay that arrived. */
  readonly created: readonly Created[];
  /** How many of the first ones are told UNAVAILABLE. Set by the test. */
  failures: number;
  /** Called when one arrives. Set by the test. */
  onCreate: () => void;
}

/** Starts both before each test, and ends them after it. GetPayment finds nothing. */
export function useCountingPayments(): CountingPayments {
  let server: Server;
  let address = '';
  let client: PaymentsClient | undefined;
  let created: Created[] = [];
  const used: CountingPayments = {
    failures: 0,
    onCreate: () => undefined,
    get address() {
      return address;
    },
    get client() {
      if (client === undefined) throw new Error('no test runs');
      return client;
    },
    get created() {
      return created;
    },
  };
  const unused = (): void => undefined;
  const handlers: PaymentsServiceServer = {
    createPayment: (call, answer) => {
      created.push(call);
      used.onCreate();
      if (created.length <= used.failures) answer({ code: status.UNAVAILABLE, details: 'down' });
      else if (call.request.orderId !== HANGING.orderId) answer(null, { payment: undefined });
    },
    getPayment: (_, answer) => answer({ code: status.NOT_FOUND, details: 'no such payment' }),
    ...{ refundPayment: unused, listPayments: unused, cancelPayment: unused, updatePayment: unused },
  };

  beforeEach(async () => {
    created = [];
    used.failures = 0;
    used.onCreate = () => undefined;
    server = new Server();
    server.addService(PaymentsServiceService, handlers);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    address = `127.0.0.1:${port}`;
    client = createPaymentsClient(address, { credentials: credentials.createInsecure(), initialBackoffMs: 1 });
  });

  afterEach(() => {
    client?.close();
    server.forceShutdown();
  });

  return used;
}
