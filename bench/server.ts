/** A server of the bench, in a process of its own. */
import { Server } from '@grpc/grpc-js';
import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { connect } from '../src/database/connect';
import { createStatementNames } from '../src/database/statement-names';
import { descriptorSet } from '../src/gen/descriptor-set';
import { PrismaClient } from '../src/gen/prisma/client';
import { PaymentsServiceService } from '../src/gen/proto/payments/v1/payments';
import { listen } from '../src/grpc-server';
import {
  createDays,
  createIdempotency,
  loadPolicies,
  type MethodPolicy,
  openPostgresStore,
  type PolicyRegistry,
} from '../src/idempotency/index';
import { perform, read, SCOPE } from './handlers';
import type { FromServer, ServerOptions, ToServer } from './messages';
import { unprotectedService } from './unprotected-service';

/** As many as `connect` opens for handlers. */
const POOL_SIZE = 10;

async function main(options: ServerOptions): Promise<void> {
  // A Ctrl-C in the terminal reaches all processes; the bench decides when this one ends.
  process.on('SIGINT', () => undefined);
  process.once('disconnect', () => process.exit(1));
  process.on('message', ({ type }: ToServer) => {
    if (type === 'stop') process.exit(0);
    const { user, system } = process.cpuUsage();
    tell({ type: 'cpu', usedUs: user + system });
  });
  const server = await serverOf(options);
  tell({ type: 'ready', port: await listen(server, '127.0.0.1', 0) });
}

async function serverOf({ connectionString, variant }: ServerOptions): Promise<Server> {
  switch (variant) {
    case 'unprotected':
      return unprotectedServer(plainClient(connectionString));
    case 'unprotected, same adapter':
      return unprotectedServer(connect({ connectionString }).business);
    case 'protected':
      return protectedServer(connectionString);
    case 'protected, any client':
      return protectedServer(connectionString, plainClient(connectionString));
  }
}

function unprotectedServer(prisma: PrismaClient): Server {
  const server = new Server();
  server.addService(PaymentsServiceService, unprotectedService(prisma));
  return server;
}

/** What is on offer without us, at its fastest: prepared statements, and errors without excerpts of the source. */
function plainClient(connectionString: string): PrismaClient {
  const pool = new Pool({ connectionString, max: POOL_SIZE, keepAlive: true, application_name: 'bench unprotected' });
  const adapter = new PrismaPg(pool, { statementNameGenerator: createStatementNames() });
  return new PrismaClient({ adapter, errorFormat: 'minimal' });
}

/** @param client whose transactions are used; default those that a service of this package has */
async function protectedServer(connectionString: string, client?: PrismaClient): Promise<Server> {
  const { business, transactions, store: records } = connect({ connectionString });
  const policies = withDefaults(loadPolicies(descriptorSet));
  const keyed = policies.all().filter(({ key }) => key !== 'IGNORED');
  const store = await openPostgresStore({ business: client ?? transactions, records, policies: keyed });
  await createDays(records);
  const idempotency = createIdempotency({ policies, store, principal: () => SCOPE });
  const server = new Server({ interceptors: [idempotency.interceptor] });
  idempotency.addService(server, PaymentsServiceService, {
    createPayment: (request, attempt) => attempt.complete((tx) => perform(tx, request)),
    getPayment: (request) => read(business, request.paymentId),
  });
  return server;
}

/** Payments keep requests, to resume them; a handler without steps has no use for that. */
function withDefaults({ get, all }: PolicyRegistry): PolicyRegistry {
  const plain = (policy: MethodPolicy): MethodPolicy => ({ ...policy, resume: false });
  return {
    get: (path) => {
      const policy = get(path);
      return policy && plain(policy);
    },
    all: () => all().map(plain),
  };
}

function tell(message: FromServer): void {
  process.send?.(message);
}

main(JSON.parse(process.argv[2] ?? '{}') as ServerOptions).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
