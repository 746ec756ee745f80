import { type handleUnaryCall, Server, ServerCredentials, type ServerUnaryCall } from '@grpc/grpc-js';
import { compileProto } from './compile-proto';

/** A service that this package knows nothing of: its protos, and its definition as ts-proto writes one. */
export interface Book {
  readonly title: string;
  readonly copies: bigint;
}

/** What is answered to a book. */
export interface Receipt {
  readonly shelf: number;
}

/** The serialized protos of the service. */
export function foreignDescriptorSet(): Uint8Array {
  return compileProto(`
    syntax = "proto3";
    package library.v1;
    service ShelfService {
      rpc PutBook(Book) returns (Receipt);
      rpc FindBook(Book) returns (Receipt) { option idempotency_level = NO_SIDE_EFFECTS; }
      rpc WatchShelf(Book) returns (stream Receipt) { option idempotency_level = NO_SIDE_EFFECTS; }
    }
    message Book { string title = 1; int64 copies = 2; }
    message Receipt { int32 shelf = 1; }`);
}

// JSON stands for the encoding: how a service writes its messages is its own affair.
const bytesOf = (message: object): Buffer =>
  Buffer.from(JSON.stringify(message, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)));
const book = (bytes: Buffer): Book => {
  const { title, copies } = JSON.parse(bytes.toString()) as { title: string; copies: string };
  return { title, copies: BigInt(copies) };
};
const receipt = (bytes: Buffer): Receipt => JSON.parse(bytes.toString()) as Receipt;

const shape = {
  requestStream: false as const,
  requestSerialize: (value: Book): Buffer => bytesOf(value),
  requestDeserialize: book,
  responseSerialize: (value: Receipt): Buffer => bytesOf(value),
  responseDeserialize: receipt,
};

/** As ts-proto writes it with `outputServices=grpc-js`. */
export const ShelfService = {
  putBook: { ...shape, path: '/library.v1.ShelfService/PutBook' as const, responseStream: false as const },
  findBook: { ...shape, path: '/library.v1.ShelfService/FindBook' as const, responseStream: false as const },
  watchShelf: { ...shape, path: '/library.v1.ShelfService/WatchShelf' as const, responseStream: true as const },
} as const;

/** A server of the service, and what reached it. */
export interface ForeignServer {
  readonly address: string;
  readonly arrivals: readonly ServerUnaryCall<Book, Receipt>[];
  close(): void;
}

/** Starts a server of the service, without this library. */
export async function startForeignServer(handle: handleUnaryCall<Book, Receipt>): Promise<ForeignServer> {
  const arrivals: ServerUnaryCall<Book, Receipt>[] = [];
  const server = new Server();
  const counted: typeof handle = (call, answer) => {
    arrivals.push(call);
    handle(call, answer);
  };
  const { putBook, findBook } = ShelfService;
  server.addService({ putBook, findBook }, { putBook: counted, findBook: counted });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { address: `127.0.0.1:${port}`, arrivals, close: () => server.forceShutdown() };
}
