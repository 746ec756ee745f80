import { credentials, type Interceptor, Metadata, status } from '@grpc/grpc-js';
import { createPromiseClient, loadPolicies, type PromiseClient } from '../../src/idempotency/index';
import {
  type Book,
  type ForeignServer,
  foreignDescriptorSet,
  ShelfService,
  startForeignServer,
} from './foreign-service';

/** A book whose copies no double can count. */
export const BOOK: Book = { title: 'Kürk Mantolu Madonna', copies: 9_007_199_254_740_993n };

/** A foreign service, and our client of it. The fields are there while the tests of its `describe` run. */
export interface ShelfInUse {
  readonly server: ForeignServer;
  /** How many of the next calls are answered with UNAVAILABLE. None at the beginning of each test. */
  failures: number;
  /** Of the answers. Empty at the beginning of each test. */
  trailers: Metadata;
  /** Connects, with a backoff of a millisecond. The test closes it. */
  connect(change?: { readonly interceptors?: readonly Interceptor[] }): PromiseClient<typeof ShelfService>;
}

/** Starts the service before the tests of a `describe`, and ends it after. It puts `BOOK` on shelf 7, others on 0. */
export function useShelf(): ShelfInUse {
  const policies = loadPolicies(foreignDescriptorSet());
  const settings = { credentials: credentials.createInsecure(), policies, initialBackoffMs: 1 };
  const inUse = {
    connect: (change = {}) => createPromiseClient(ShelfService, inUse.server.address, { ...settings, ...change }),
  } as { -readonly [Name in keyof ShelfInUse]: ShelfInUse[Name] };

  beforeAll(async () => {
    inUse.server = await startForeignServer((call, answer) => {
      inUse.failures -= 1;
      if (inUse.failures >= 0) answer({ code: status.UNAVAILABLE, details: 'down' });
      else answer(null, { shelf: call.request.copies === BOOK.copies ? 7 : 0 }, inUse.trailers);
    });
  });

  beforeEach(() => {
    inUse.failures = 0;
    inUse.trailers = new Metadata();
  });

  afterAll(() => inUse.server.close());

  return inUse;
}
