import {
  type ChannelOptions,
  Client,
  credentials,
  type handleUnaryCall,
  type Interceptor,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceError,
  type status,
  type StatusObject,
} from '@grpc/grpc-js';

/** The methods of PaymentsService that stand for the three levels. */
export const PATHS = {
  unknown: '/payments.v1.PaymentsService/CreatePayment',
  safe: '/payments.v1.PaymentsService/GetPayment',
  idempotent: '/payments.v1.PaymentsService/CancelPayment',
  unregistered: '/foreign.v1.Things/Touch',
} as const;

/** One call that reached the server: the truth about what was sent. */
export interface Arrival {
  readonly path: string;
  readonly message: Buffer;
  readonly metadata: Metadata;
  readonly atMs: number;
  readonly cancelled: Promise<void>;
}

/** What the server does with one arrival. */
export type Reply = (answer: sendUnaryData<Buffer>, call: ServerUnaryCall<Buffer, Buffer>) => void;

export interface ScriptedServer {
  readonly server: Server;
  readonly port: number;
  readonly address: string;
  readonly arrivals: readonly Arrival[];
  /** Resolves once so many calls have arrived. */
  arrived(count: number): Promise<void>;
  close(): void;
}

export const succeed =
  (text: string, trailers?: Metadata): Reply =>
  (answer) =>
    answer(null, Buffer.from(text), trailers);

export const fail =
  (code: status, details: string, metadata?: Metadata): Reply =>
  (answer) =>
    answer({ code, details, ...(metadata && { metadata }) });

export const hang: Reply = () => undefined;

/** Where a scripted server listens; a free port by default. */
export interface ScriptedPlace {
  readonly port: number;
}

/** Starts a server that gives the nth arrival the nth reply, and the last reply to all that follow. */
export async function startScriptedServer(...given: readonly (Reply | ScriptedPlace)[]): Promise<ScriptedServer> {
  const script = given.filter((reply) => typeof reply === 'function');
  const place = given.find((reply) => typeof reply !== 'function');
  const arrivals: Arrival[] = [];
  const waiting: (() => void)[] = [];
  const server = new Server();
  const handle =
    (path: string): handleUnaryCall<Buffer, Buffer> =>
    (call, answer) => {
      const cancelled = new Promise<void>((resolve) => call.on('cancelled', () => resolve()));
      const arrival = { path, message: call.request, metadata: call.metadata, atMs: performance.now(), cancelled };
      const reply = script[Math.min(arrivals.length, script.length - 1)];
      arrivals.push(arrival);
      for (const wake of waiting.splice(0)) wake();
      reply?.(answer, call);
    };
  for (const path of Object.values(PATHS)) server.addService({ method: definition(path) }, { method: handle(path) });
  const port = await new Promise<number>((resolve, reject) => {
    const address = `127.0.0.1:${place?.port ?? 0}`;
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const arrived = async (count: number): Promise<void> => {
    while (arrivals.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return { server, port, address: `127.0.0.1:${port}`, arrivals, arrived, close: () => server.forceShutdown() };
}

/** Everything that a call told its caller. */
export interface Outcome {
  readonly error: ServiceError | null;
  readonly text: string | undefined;
  readonly initial: Metadata | undefined;
  readonly status: StatusObject;
}

export interface RawCall {
  readonly outcome: Promise<Outcome>;
  cancel(): void;
}

export interface RawClient {
  readonly client: Client;
  start(path: string, options?: { message?: Buffer; metadata?: Metadata; deadline?: number }): RawCall;
  call(path: string, options?: { message?: Buffer; metadata?: Metadata; deadline?: number }): Promise<Outcome>;
}

/** Makes a client that sends bytes as they are. */
export function rawClient(address: string, interceptors: Interceptor[], options: ChannelOptions = {}): RawClient {
  const client = new Client(address, credentials.createInsecure(), { ...options, interceptors });
  const same = (bytes: Buffer): Buffer => bytes;
  const start: RawClient['start'] = (path, { message = Buffer.from('request'), metadata, deadline } = {}) => {
    let cancel = (): void => undefined;
    const outcome = new Promise<Outcome>((resolve) => {
      let answer: { error: ServiceError | null; text: string | undefined } | undefined;
      let initial: Metadata | undefined;
      const callOptions = deadline === undefined ? {} : { deadline };
      const call = client.makeUnaryRequest(
        path,
        same,
        same,
        message,
        metadata ?? new Metadata(),
        callOptions,
        (error, response) => {
          answer = { error, text: response?.toString() };
        },
      );
      call.on('metadata', (received: Metadata) => (initial = received));
      // The status comes last, after the callback.
      call.on('status', (status: StatusObject) => {
        if (answer !== undefined) resolve({ ...answer, initial, status });
      });
      cancel = () => call.cancel();
    });
    return { outcome, cancel: () => cancel() };
  };
  return { client, start, call: (path, callOptions) => start(path, callOptions).outcome };
}

/** Metadata with these entries. */
export function metadataOf(entries: Readonly<Record<string, string | Buffer>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

function definition(path: string) {
  const same = (bytes: Buffer): Buffer => bytes;
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}
