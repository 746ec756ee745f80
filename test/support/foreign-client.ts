import { Client, compressionAlgorithms, credentials, Metadata, type status } from '@grpc/grpc-js';
import { readErrorDetails } from '../../src/idempotency/index';

/** What became of bytes that were sent. */
export interface ForeignAnswer {
  readonly code: status;
  /** The response as it came over the wire; undefined without one. */
  readonly bytes: Buffer | undefined;
  readonly replayed: boolean;
  /** `ErrorInfo.reason` */
  readonly reason: string | undefined;
}

/** A client that knows no proto: it sends the bytes that it is given. */
export interface ForeignClient {
  /** @param path such as `/payments.v1.PaymentsService/CreatePayment` */
  send(path: string, bytes: Uint8Array, requestId: string): Promise<ForeignAnswer>;
  close(): void;
}

/** Connects without credentials. */
export function createForeignClient(port: number, options: { readonly gzip?: boolean } = {}): ForeignClient {
  const algorithm = options.gzip === true ? compressionAlgorithms.gzip : compressionAlgorithms.identity;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    'grpc.default_compression_algorithm': algorithm,
  });
  const asTheyAre = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
  return {
    send: (path, bytes, requestId) => {
      const sent = new Metadata();
      sent.set('request-id', requestId);
      const deadline = Date.now() + 20_000;
      return new Promise((resolve) => {
        let response: Buffer | undefined;
        client
          .makeUnaryRequest(path, asTheyAre, asTheyAre, bytes, sent, { deadline }, (_error, received) => {
            response = received;
          })
          .on('status', ({ code, metadata }) => {
            const replayed = metadata.get('idempotent-replayed').includes('true');
            resolve({ code, bytes: response, replayed, reason: readErrorDetails(metadata).reason });
          });
      });
    },
    close: () => client.close(),
  };
}
