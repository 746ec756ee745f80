import { setTimeout as delay } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { PrismaClient } from '../gen/prisma/client';
import { createStatementNames } from './statement-names';

/** How long a connection is waited for, new or from the pool, before the statement fails; milliseconds. */
const CONNECTION_TIMEOUT_MS = 5_000;

/** How long a connection may be silent before the kernel asks whether the other side still lives; milliseconds. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/** How long statements that still run may take to end at a close; milliseconds. */
const CLOSE_WITHIN_MS = 1_000;

/** What to connect to, and with how many connections. */
export interface ConnectOptions {
  readonly connectionString: string;
  /** Most connections of the handlers' transactions. Default 10. */
  readonly businessPoolSize?: number;
  /** Most connections of claims, look-ups and releases. Default 4. */
  readonly storePoolSize?: number;
  /** Told of connections that died while no statement ran on them; the next statement opens a new one. */
  readonly onError?: (error: Error) => void;
}

/** The two ways to the database. Claims have their own, so that slow handlers never starve them (design 4.6). */
export interface Database {
  /** For what handlers write. */
  readonly business: PrismaClient;
  /** For claims, look-ups and releases. */
  readonly store: PrismaClient;
  /**
   * Closes both pools once the statements that run have ended, and waits a second for that: a transaction that waits for
   * a lock ends with the process, rolled back. Later calls do nothing more.
   */
  close(): Promise<void>;
}

/**
 * Opens nothing yet: the first statement connects. A database that is away is an error of each statement, within five
 * seconds, never of the process; when it is back the next statement reaches it.
 */
export function connect(options: ConnectOptions): Database {
  const business = openPool('business', options.businessPoolSize ?? 10, options);
  const store = openPool('store', options.storePoolSize ?? 4, options);
  let closing: Promise<void> | undefined;
  const closeBoth = async (): Promise<void> => {
    const closed = Promise.all([business.close(), store.close()]);
    await Promise.race([closed, delay(CLOSE_WITHIN_MS, undefined, { ref: false })]);
  };
  return {
    business: business.client,
    store: store.client,
    close: () => (closing ??= closeBoth()),
  };
}

function openPool(name: string, max: number, options: ConnectOptions) {
  const pool = new Pool({
    ...inUtc(options.connectionString),
    max,
    application_name: `grpc-idempotency ${name}`,
    connectionTimeoutMillis: CONNECTION_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  });
  // Without a listener an idle connection that the server closes would end the process (case K8).
  pool.on('error', (error) => options.onError?.(error));
  const adapter = new PrismaPg(pool, { statementNameGenerator: createStatementNames() });
  const client = new PrismaClient({ adapter, errorFormat: 'minimal' });
  const close = async () => {
    await client.$disconnect();
    await pool.end();
  };
  return { client, close };
}

/**
 * The adapter writes times without a zone and drops the zone of those it reads, so a session in any other zone than UTC
 * would shift every timestamp. Said at connection start-up, after what the connection string itself asks for.
 */
function inUtc(connectionString: string): { readonly connectionString: string } {
  const url = new URL(connectionString);
  const options = url.searchParams.get('options');
  url.searchParams.set('options', `${options ?? ''} -c TimeZone=UTC`.trim());
  return { connectionString: url.href };
}
