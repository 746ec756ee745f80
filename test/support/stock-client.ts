import { join } from 'node:path';
import {
  type CallOptions,
  type Client,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  Metadata,
  status,
} from '@grpc/grpc-js';
import type { MethodDefinition, ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { type ErrorDetails, readErrorDetails } from '../../src/idempotency/index';

/** What a stock client got. */
export interface StockAnswer {
  readonly code: status;
  readonly details: string;
  /** The response as it came over the wire; undefined without one. */
  readonly bytes: Buffer | undefined;
  /** Decoded by proto-loader, 64-bit numbers as text; undefined without one. */
  readonly response: { readonly payment: { readonly payment_id: string } } | undefined;
  readonly trailers: Metadata;
  /** Nothing came before the status: a client may still retry by itself (design 3.3). */
  readonly trailersOnly: boolean;
  readonly error: ErrorDetails;
}

/** One call of a stock client. */
export interface StockCall {
  /** `CreatePayment` */
  readonly method: string;
  readonly request: object;
  /** Sent as `request-id`; left out where undefined. */
  readonly requestId?: string | undefined;
  /** Several values of one name are sent as so many entries. */
  readonly metadata?: Readonly<Record<string, string | Buffer | readonly string[]>>;
  readonly deadlineMs?: number;
  /** Hangs up when it aborts. */
  readonly signal?: AbortSignal;
}

/** A grpc-js client that loads the proto at run time and knows nothing of this library. */
export interface StockClient {
  call(call: StockCall): Promise<StockAnswer>;
  close(): void;
}

const PROTO = join(__dirname, '..', '..', 'proto');

/** Connects without credentials; native retries are as grpc-js has them by default. */
export function createStockClient(
  port: number,
  options: { readonly [name: string]: string | number } = {},
): StockClient {
  const definition = loadSync('payments/v1/payments.proto', { includeDirs: [PROTO], longs: String, keepCase: true });
  const service = constructorOf(loadPackageDefinition(definition));
  const client: Client = new service(`127.0.0.1:${port}`, credentials.createInsecure(), options);
  return {
    call: (call) => callOnce(client, service.service[call.method] as MethodDefinition<object, object>, call),
    close: () => client.close(),
  };
}

function callOnce(
  client: Client,
  method: MethodDefinition<object, object>,
  { request, requestId, metadata = {}, deadlineMs = 20_000, signal }: StockCall,
): Promise<StockAnswer> {
  const sent = new Metadata();
  if (requestId !== undefined) sent.set('request-id', requestId);
  for (const [name, values] of Object.entries(metadata)) {
    for (const value of [values].flat()) sent.add(name, value);
  }
  const options: CallOptions = { deadline: Date.now() + deadlineMs };
  return new Promise((resolve) => {
    let bytes: Buffer | undefined;
    let trailersOnly = true;
    const keepBytes = (received: Buffer): Buffer => (bytes = received);
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      keepBytes,
      request,
      sent,
      options,
      () => {
        // Everything is in the status.
      },
    );
    call.on('metadata', () => (trailersOnly = false));
    signal?.addEventListener('abort', () => call.cancel(), { once: true });
    call.on('status', ({ code, details, metadata: trailers }) => {
      const response = bytes === undefined || code !== status.OK ? undefined : method.responseDeserialize(bytes);
      const answer = { code, details, trailers, trailersOnly, error: readErrorDetails(trailers) };
      resolve({
        ...answer,
        bytes: code === status.OK ? bytes : undefined,
        response: response as StockAnswer['response'],
      });
    });
  });
}

function constructorOf(loaded: GrpcObject): ServiceClientConstructor {
  const payments = loaded['payments'] as GrpcObject;
  return (payments['v1'] as GrpcObject)['PaymentsService'] as ServiceClientConstructor;
}
