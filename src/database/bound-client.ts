import type {
  ConnectionInfo,
  SqlDriverAdapter,
  SqlQuery,
  SqlResultSet,
  Transaction,
  TransactionOptions,
} from '@prisma/driver-adapter-utils';
import { PrismaClient } from '../gen/prisma/client';
import { TransactionClosedError } from './transaction-errors';

/** A Prisma client whose statements all go to one transaction at a time. */
export interface BoundClient {
  readonly client: PrismaClient;
  /** Sends what follows to this transaction. */
  bind(transaction: Transaction): void;
  /** Refuses whatever follows. */
  unbind(): void;
}

/** Makes one. It opens no connection of its own. */
export function createBoundClient(connectionInfo: ConnectionInfo): BoundClient {
  const place = new Place(connectionInfo);
  const adapter = { provider: place.provider, adapterName: place.adapterName, connect: () => Promise.resolve(place) };
  return {
    client: new PrismaClient({ adapter, errorFormat: 'minimal' }),
    bind: (transaction) => (place.transaction = transaction),
    unbind: () => (place.transaction = undefined),
  };
}

/** What a client takes for a connection. */
class Place implements SqlDriverAdapter {
  readonly provider = 'postgres' as const;
  readonly adapterName = 'grpc-idempotency';
  transaction: Transaction | undefined;

  constructor(private readonly connectionInfo: ConnectionInfo) {}

  getConnectionInfo(): ConnectionInfo {
    return this.connectionInfo;
  }

  queryRaw(query: SqlQuery): Promise<SqlResultSet> {
    return this.transaction === undefined
      ? Promise.reject(new TransactionClosedError())
      : this.transaction.queryRaw(query);
  }

  executeRaw(query: SqlQuery): Promise<number> {
    return this.transaction === undefined
      ? Promise.reject(new TransactionClosedError())
      : this.transaction.executeRaw(query);
  }

  executeScript(): Promise<void> {
    return Promise.reject(new Error('several statements in one text are not run within a transaction'));
  }

  /** An operation of several statements wants to be one transaction, and is part of one: it fails with it. */
  startTransaction(): Promise<Transaction> {
    return Promise.resolve(new Part(this));
  }

  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

/** What such an operation takes for its own transaction. */
class Part implements Transaction {
  readonly provider = 'postgres' as const;
  readonly adapterName = 'grpc-idempotency';
  /** Its BEGIN, COMMIT and ROLLBACK are not sent. */
  readonly options: TransactionOptions = { usePhantomQuery: true };

  constructor(private readonly whole: Place) {}

  queryRaw(query: SqlQuery): Promise<SqlResultSet> {
    return this.whole.queryRaw(query);
  }

  executeRaw(query: SqlQuery): Promise<number> {
    return this.whole.executeRaw(query);
  }

  commit(): Promise<void> {
    return Promise.resolve();
  }

  rollback(): Promise<void> {
    return Promise.resolve();
  }
}
