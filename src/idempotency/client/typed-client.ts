import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type Interceptor,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { type CallEnd, readCallEnd } from './call-end';
import { checkCredentials } from './check-credentials';
import { quietListener } from '../quiet-listener';
import { checkKey } from './check-key';
import { checkRequest } from './check-request';
import { CHANNEL_OPTIONS } from './channel-options';
import { type ClientOptions, type ClientSettings, clientSettings, isTimeoutMs } from './client-options';
import { createClientInterceptor } from './interceptor';

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
  /** For the channel, under those of `CHANNEL_OPTIONS`. */
  readonly channelOptions?: ChannelOptions | undefined;
  /** Interceptors around the retries: they see one call, not its attempts. */
  readonly interceptors?: readonly Interceptor[] | undefined;
}

/** What one call is given. */
export interface CallSettings {
  /** The key: made where the intent is made, kept with it, the same whenever this intent is sent. */
  readonly requestId?: string | undefined;
  /** Time for the call with all its attempts; more than 0, at most that of the client, which is also the default. */
  readonly timeoutMs?: number | undefined;
  /** Cancels the call: it rejects with CANCELLED and nothing more is sent. */
  readonly signal?: AbortSignal | undefined;
  /** Sent with every attempt; copied, never written to. */
  readonly metadata?: Metadata | undefined;
  /**
   * Told how the call ended, before its promise settles: whether the answer is a replay, and until when it is kept. Not
   * called where nothing could be sent. It must not throw.
   */
  readonly onEnd?: ((end: CallEnd) => void) | undefined;
}

/**
 * Makes a promise client of a service.
 *
 * A call rejects with grpc-js's `ServiceError`, whose details say how many attempts were made and why they stopped; or
 * with a TypeError, before anything is sent, when its key, its timeout or its request can't be right.
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
  if ('close' in service) throw new TypeError(`${service['close']?.path} would hide the client's own close()`);
  const settings = clientSettings(options);
  checkCredentials(options.credentials);
  const client = new Client(address, options.credentials, {
    ...options.channelOptions,
    ...CHANNEL_OPTIONS,
    interceptors: [...(options.interceptors ?? []), createClientInterceptor(options)],
  });
  const unary = Object.entries(service).filter(([, method]) => !method.requestStream && !method.responseStream);
  const methods = new Map(
    unary.map(([name, method]) => [
      name,
      (request: unknown, call?: CallSettings) => send(client, settings, { name, ...method }, request, call),
    ]),
  );
  // The mapped type says what these lines do, in a way that TypeScript can't follow.
  return { ...Object.fromEntries(methods), close: () => client.close() } as unknown as PromiseClient<Service>;
}

async function send(
  client: Client,
  settings: ClientSettings,
  method: MethodShape & { readonly name: string },
  request: unknown,
  { requestId, timeoutMs = settings.timeoutMs, signal, metadata: given, onEnd }: CallSettings = {},
): Promise<unknown> {
  if (!isTimeoutMs(timeoutMs) || timeoutMs > settings.timeoutMs) {
    throw new TypeError(
      `timeoutMs: expected more than 0 and at most the client's ${settings.timeoutMs}, got ${timeoutMs}`,
    );
  }
  const metadata = given?.clone() ?? new Metadata();
  checkKey(settings, method.path, metadata, requestId);
  if (requestId !== undefined) metadata.set(settings.requestIdName, requestId);
  checkRequest(method.name, method, request);
  const serialize = method.requestSerialize as (request: unknown) => Buffer;
  if (signal?.aborted) throw cancelledBeforeSending();
  return new Promise((resolve, reject) => {
    const cancel = (): void => call.cancel();
    const call = client.makeUnaryRequest(
      method.path,
      serialize,
      method.responseDeserialize,
      request,
      metadata,
      { deadline: Date.now() + timeoutMs },
      (error, response) => {
        signal?.removeEventListener('abort', cancel);
        if (error === null) resolve(response);
        else reject(error);
      },
    );
    if (onEnd !== undefined) call.on('status', (ended) => quietListener(onEnd)(readCallEnd(ended)));
    signal?.addEventListener('abort', cancel, { once: true });
  });
}

/** The same error as of a call that is aborted while it runs, so that callers look for one. */
function cancelledBeforeSending(): ServiceError {
  const details = 'Cancelled before it was sent';
  const error = new Error(`${status.CANCELLED} CANCELLED: ${details}`);
  return Object.assign(error, { code: status.CANCELLED, details, metadata: new Metadata() });
}
