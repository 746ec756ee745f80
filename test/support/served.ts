import { Server } from '@grpc/grpc-js';
import { connect } from '../../src/database/connect';
import type { Prisma } from '../../src/gen/prisma/client';
import { listen } from '../../src/grpc-server';
import {
  createDays,
  createIdempotency,
  type Idempotency,
  loadPolicies,
  openPostgresStore,
} from '../../src/idempotency/index';

/** A server of services that a test defines. */
export interface Served {
  readonly port: number;
  stop(): Promise<void>;
}

/** What to serve. */
export interface ServeOptions {
  readonly connectionString: string;
  readonly descriptorSet: Uint8Array;
  /** Adds the services. */
  readonly add: (idempotency: Idempotency<Prisma.TransactionClient>, server: Server) => void;
}

/** Serves, protected, on a free port; everybody is `account-1`. Call `stop` before the database goes. */
export async function serve({ connectionString, descriptorSet, add }: ServeOptions): Promise<Served> {
  const connections = connect({ connectionString });
  const policies = loadPolicies(descriptorSet);
  const { transactions, store: records } = connections;
  const store = await openPostgresStore({ business: transactions, records, policies: policies.all() });
  await createDays(records);
  const idempotency = createIdempotency({ policies, store, principal: () => 'account-1' });
  const server = new Server({ interceptors: [idempotency.interceptor] });
  add(idempotency, server);
  const port = await listen(server, '127.0.0.1', 0);
  return {
    port,
    stop: async () => {
      server.forceShutdown();
      await idempotency.idle();
      await connections.close();
    },
  };
}
