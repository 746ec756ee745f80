import { type ChannelCredentials, type ChannelOptions, Client, type Interceptor } from '@grpc/grpc-js';
import { safeChannelOptions } from './channel-options';
import { checkChannel, checkPlaces, PROMISE_CLIENT_OPTIONS } from './check-promise-options';
import { type ClientOptions, clientSettings } from './client-options';
import { interceptorOf } from './interceptor';
import { sharedRetryBudget } from './retry-budget';
import { type CallSettings, sendTypedCall } from './typed-call';

/** A method of a service definition as ts-proto writes it with `outputServices=grpc-js`. */
export interface MethodShape {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (request: never) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => unknown;
}

/** A service definition: its methods by the names they have in TypeScript. */
export type ServiceShape = Readonly<Record<string, MethodShape>>;

interface UnaryShape<Request, Response> extends MethodShape {
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** The unary methods of a service as promises, and `close`. Other methods are not offered. */
export type PromiseClient<Service extends ServiceShape> = {
  readonly [
    Name in keyof Service as Service[Name] extends UnaryShape<never, unknown> ? Name : never
  ]: Service[Name] extends UnaryShape<infer Request, infer Response>
    ? (request: Request, settings?: CallSettings) => Promise<Response>
    : never;
} & {
  /** Ends the channel. Running calls end on their own; later ones fail. */
  close(): void;
};

/** What a promise client needs beside the options of its retries. */
export interface PromiseClientOptions extends ClientOptions {
  /** Of the grpc-js that this package uses: `credentials` is exported beside this for that. */
  readonly credentials: ChannelCredentials;
  /** For the channel; made safe by `safeChannelOptions`. */
  readonly channelOptions?: ChannelOptions | undefined;
  /** Interceptors around the retries: they see one call, not its attempts. */
  readonly interceptors?: readonly Interceptor[] | undefined;
}

/**
 * Makes a promise client of a service.
 *
 * A call rejects with an `IdempotencyError`, which is a `ServiceError` that says how many attempts were made, why they
 * stopped, and whether the outcome is unknown; or with a TypeError, before anything is sent, when its settings, its key, its
 * times or its request can't be right.
 *
 * @param service as generated, for example `PaymentsServiceService`
 * @param address a gRPC target, for example `127.0.0.1:50051`
 * @throws TypeError that names each option at fault, or if the service has a method `close`
 */
export function createPromiseClient<Service extends ServiceShape>(
  service: Service,
  address: string,
  options: PromiseClientOptions,
): PromiseClient<Service> {
  checkPlaces(service, address, options);
  const retryBudget = options.retryBudget ?? sharedRetryBudget(address);
  const settings = clientSettings({ ...options, retryBudget }, PROMISE_CLIENT_OPTIONS);
  checkChannel(options);
  if ('close' in service) throw new TypeError(`${service['close']?.path} would hide the client's own close()`);
  const client = new Client(address, options.credentials, {
    ...safeChannelOptions(options.channelOptions, settings.onEvent, address),
    interceptors: [...(options.interceptors ?? []), interceptorOf(settings)],
  });
  const unary = Object.entries(service).filter(([, method]) => !method.requestStream && !method.responseStream);
  const methods = new Map(
    unary.map(([name, method]) => [
      name,
      (request: unknown, call?: CallSettings) => sendTypedCall(client, settings, { name, ...method }, request, call),
    ]),
  );
  // The mapped type says what these lines do, in a way that TypeScript can't follow.
  return { ...Object.fromEntries(methods), close: () => client.close() } as unknown as PromiseClient<Service>;
}
