import { setTimeout as delay } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import type { PoolConfig } from 'pg';
import { PrismaClient } from '../gen/prisma/client';
import { type BoundTransactions, createBoundTransactions } from './bound-transactions';
import { createTransactionPool } from './pg-pool';
import { createStatementNames } from './statement-names';

/** How long a connection is waited for, new or from the pool, before the statement fails; milliseconds. */
const CONNECTION_TIMEOUT_MS = 5_000;

/** How long a connection may be silent before the kernel asks whether the other side still lives; milliseconds. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/** How long COMMIT and ROLLBACK wait for their answer before their connection is given up; milliseconds (design 4.8). */
const END_WITHIN_MS = 5_000;

/** How long claims and look-ups wait for their answer, likewise; above what they wait for a lock; milliseconds. */
const STORE_ANSWER_WITHIN_MS = 10_000;

/** How long statements that still run may take to end at a close; milliseconds. */
const CLOSE_WITHIN_MS = 1_000;

/** What to connect to, and with how many connections. */
export interface ConnectOptions {
  readonly connectionString: string;
  /** Most connections of the handlers' transactions. Default 10. */
  readonly businessPoolSize?: number;
  /** Most connections of claims, look-ups and releases. Default 4. */
  readonly storePoolSize?: number;
  /** How long a COMMIT may go without an answer; its outcome is unknown then. Milliseconds, default 5,000. */
  readonly endWithinMs?: number;
  /** How long a statement of the store may go without an answer. Milliseconds, default 10,000. */
  readonly storeAnswerWithinMs?: number;
  /** Told of connections that died while no statement ran on them; the next statement opens a new one. */
  readonly onError?: (error: Error) => void;
  /** Told of each wait for a connection of a pool whose connections were all in use, and how long it was; milliseconds. */
  readonly onPoolWait?: (pool: PoolName, waitedMs: number) => void;
}

/** The pools of a database. */
export const POOL_NAMES = ['business', 'store', 'maintenance'] as const;

/** One of the pools of a database. */
export type PoolName = (typeof POOL_NAMES)[number];

/** How long a COMMIT of maintenance may take, which may move or delete a whole day; milliseconds. */
const MAINTENANCE_END_WITHIN_MS = 60_000;

/** How long maintenance waits for a lock before it lets go and comes again; milliseconds. */
const MAINTENANCE_PATIENCE_MS = 2_000;

/** The ways to the database. Claims have their own, so that slow handlers never starve them (design 4.6). */
export interface Database {
  /** For what handlers write. */
  readonly business: PrismaClient;
  /** The same connections, for the transactions of a store. */
  readonly transactions: BoundTransactions;
  /** For claims, look-ups and releases. */
  readonly store: PrismaClient;
  /** For retention: two connections that are only open while it runs, and never wait long for a lock. */
  readonly maintenance: PrismaClient;
  /**
   * Closes the pools once the statements that run have ended, and waits a second for that: a transaction that waits for
   * a lock ends with the process, rolled back. Later calls do nothing more.
   */
  close(): Promise<void>;
}

/**
 * Opens nothing yet: the first statement connects. A database that is away is an error of each statement, within five
 * seconds, never of the process; when it is back the next statement reaches it.
 */
export function connect(options: ConnectOptions): Database {
  const { connectionString, endWithinMs = END_WITHIN_MS, onError, onPoolWait } = options;
  const business = openPool('business', {
    ...{ settings: TIMES_IN_UTC, max: options.businessPoolSize ?? 10 },
    ...{ connectionString, endWithinMs, onError, onPoolWait },
  });
  const store = openPool('store', {
    ...{ settings: { ...TIMES_IN_UTC, ...PLANNED_ONCE }, max: options.storePoolSize ?? 4 },
    ...{ connectionString, endWithinMs, onError, onPoolWait },
    query_timeout: options.storeAnswerWithinMs ?? STORE_ANSWER_WITHIN_MS,
  });
  // Without a bound on answers: dropping a day waits for every transaction that may see it.
  const maintenance = openPool('maintenance', {
    ...{ settings: { ...TIMES_IN_UTC, lock_timeout: String(MAINTENANCE_PATIENCE_MS) }, max: 2 },
    ...{ connectionString, endWithinMs: MAINTENANCE_END_WITHIN_MS, onError, onPoolWait },
  });
  const transactions = createBoundTransactions(business.adapter);
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    const closed = Promise.all([transactions.close(), business.close(), store.close(), maintenance.close()]);
    await Promise.race([closed, delay(CLOSE_WITHIN_MS, undefined, { ref: false })]);
  };
  return {
    business: business.client,
    transactions,
    store: store.client,
    maintenance: maintenance.client,
    close: () => (closing ??= closeAll()),
  };
}

/**
 * The adapter writes times without a zone and drops the zone of those it reads, so a session in any other zone than UTC
 * would shift every timestamp; and it reads no other style than ISO.
 */
const TIMES_IN_UTC = { TimeZone: 'UTC', DateStyle: 'ISO' };

/**
 * How long a transaction may wait for its next statement before the server ends it, milliseconds: a process that is
 * frozen in the middle of one would hold its rows, and the attempt that takes its key over writes the same. A connection
 * string that sets it otherwise has its way.
 */
const NEXT_STATEMENT_WITHIN_MS = 30_000;

/**
 * Statements on the records all go by the primary key; planning one anew each time, over every day's table, costs more
 * than running it. Not for the business pool, whose statements we don't know.
 */
const PLANNED_ONCE = { plan_cache_mode: 'force_generic_plan' };

interface PoolSettings extends Pick<PoolConfig, 'max' | 'query_timeout'> {
  readonly connectionString: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly endWithinMs: number;
  readonly onError: ((error: Error) => void) | undefined;
  readonly onPoolWait: ConnectOptions['onPoolWait'];
}

function openPool(name: PoolName, options: PoolSettings) {
  const { connectionString, settings, endWithinMs, onError, onPoolWait, ...limits } = options;
  const pool = createTransactionPool(
    {
      connectionString: withSettings(connectionString, settings),
      ...limits,
      application_name: `grpc-idempotency ${name}`,
      connectionTimeoutMillis: CONNECTION_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    },
    { endWithinMs },
    (waitedMs) => onPoolWait?.(name, waitedMs),
  );
  // Without a listener an idle connection that the server closes would end the process (case K8).
  pool.on('error', (error) => onError?.(error));
  const adapter = new PrismaPg(pool, { statementNameGenerator: createStatementNames() });
  const client = new PrismaClient({ adapter, errorFormat: 'minimal' });
  const close = async () => {
    await client.$disconnect();
    await pool.end();
  };
  return { adapter, client, close };
}

/** Settings of every session, said at connection start-up, after what the connection string itself asks for. */
function withSettings(connectionString: string, settings: Readonly<Record<string, string>>): string {
  const url = new URL(connectionString);
  const asked = url.searchParams.get('options') ?? '';
  const byDefault = `-c idle_in_transaction_session_timeout=${NEXT_STATEMENT_WITHIN_MS}`;
  const said = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  url.searchParams.set('options', [byDefault, asked, ...said].join(' ').trim());
  return url.href;
}
