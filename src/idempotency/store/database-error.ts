import { NO_DAY, REFUSAL } from './sql/fence';

/**
 * Reads the errors of a Prisma client on `pg`, whose truth lies at different depths (case K4): a statement's SQLSTATE is
 * at `meta.driverAdapterError.cause.originalCode`, COMMIT's at `cause.originalCode`; a connection that could not be made
 * has a `kind` there and no SQLSTATE; one that broke is a plain Error of `pg` with nothing but its text.
 */

/** The SQLSTATE that the server gave, or undefined where it gave none. */
export function sqlState(error: unknown): string | undefined {
  const { originalCode } = adapterCause(error);
  return typeof originalCode === 'string' ? originalCode : undefined;
}

/** 40001 and 40P01, the transaction was chosen to be run again; or it met an index that was being replaced. */
export function isSerializationFailure(error: unknown): boolean {
  const state = sqlState(error);
  // REINDEX CONCURRENTLY on the records, which an upsert does not bear for a moment.
  const isReindexed = state === 'XX000' && hasText(error, ['invalid arbiter index list']);
  return state === '40001' || state === '40P01' || isReindexed;
}

/** The fence of a transaction refused: the claim was not held, or its whole day is gone. */
export function isFenced(error: unknown): boolean {
  if (sqlState(error) === '22P02') return hasText(error, [REFUSAL]);
  return isMissingDay(error);
}

/** 23514: the day of a record has no table: it was not made, or is over. */
export function isMissingDay(error: unknown): error is Error {
  return sqlState(error) === '23514' && error instanceof Error && NO_DAY.test(error.message);
}

/** 55P03: somebody else kept the row for longer than we wait. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/** 55P03, 40P01: others hold the locks that we need, for longer than we wait, or while they wait for ours. */
export function isLockedOut(error: unknown): boolean {
  return isLockTimeout(error) || sqlState(error) === '40P01';
}

/** 42P01, or 55000: a table is gone, or no longer what it was. Somebody else was faster. */
export function isOvertakenByDdl(error: unknown): boolean {
  const state = sqlState(error);
  return state === '42P01' || state === '55000';
}

/** 42501: the role of this connection may not do that. */
export function isMissingRight(error: unknown): boolean {
  return sqlState(error) === '42501';
}

/** A connection broke with a statement on it, which may have been carried out. The next statement gets a new one. */
export function isLostConnection(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return /^(08|57P01|57P02)/.test(state);
  const isBroken = adapterCause(error)['kind'] === 'ConnectionClosed' || BROKEN_SOCKET.has(objectOf(error)['code']);
  return isBroken || hasText(error, [BROKEN, NOT_QUERYABLE]);
}

/** The pool was closed: what is asked of it can never be carried out. */
export function isPoolEnded(error: unknown): boolean {
  return hasText(error, [POOL_ENDED]);
}

/**
 * The database could not be reached or went away, is starting or a standby, or a connection, a lock, a statement or the next
 * one of a transaction did not come in time: neither the caller's fault nor the handler's, and a retry may find it gone.
 */
export function isOutage(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return /^(08|53|57P|57014|25006|25P0[34]|55P03)/.test(state);
  return (
    isLostConnection(error) ||
    UNREACHABLE_KINDS.has(adapterCause(error)['kind']) ||
    UNREACHABLE_CODES.has(objectOf(error)['code']) ||
    isPoolEnded(error) ||
    hasText(error, [NO_CONNECTION_IN_TIME, NO_ANSWER_IN_TIME])
  );
}

/**
 * The transaction did not commit, for sure: the server said so, or COMMIT was never sent. False where the answer to a
 * COMMIT was lost, whatever the reason.
 */
export function provesRollback(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return !/^(08|57|40003)/.test(state);
  const { code, meta } = objectOf(error);
  const refusedBeforeCommit = code === 'P2028' && objectOf(meta)['operation'] === 'commit';
  return refusedBeforeCommit || hasText(error, [NOT_QUERYABLE]);
}

const BROKEN = 'Connection terminated unexpectedly';
const NOT_QUERYABLE = 'Client has encountered a connection error and is not queryable';
const NO_CONNECTION_IN_TIME = 'timeout exceeded when trying to connect';
const NO_ANSWER_IN_TIME = 'Connection terminated due to connection timeout';
const POOL_ENDED = 'Cannot use a pool after calling end on the pool';

/** What the driver adapter calls a database that it can't talk to. */
const UNREACHABLE_KINDS: ReadonlySet<unknown> = new Set([
  'DatabaseNotReachable',
  'SocketTimeout',
  'TlsConnectionError',
]);

/** Prisma's own: can't be reached, connection closed, no connection in time, transaction not started or out of time. */
const UNREACHABLE_CODES: ReadonlySet<unknown> = new Set(['P1001', 'P1017', 'P2024', 'P2028', 'EAI_AGAIN']);

/** What the operating system says of a host or a connection that went away, and the driver adapter hands on as it is. */
const BROKEN_SOCKET: ReadonlySet<unknown> = new Set([
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'ENETRESET', 'ECONNABORTED', 'EPIPE'],
]);

function adapterCause(error: unknown): Readonly<Record<string, unknown>> {
  const { meta, cause } = objectOf(error);
  const { driverAdapterError } = objectOf(meta);
  return objectOf(driverAdapterError === undefined ? cause : objectOf(driverAdapterError)['cause']);
}

function hasText(error: unknown, texts: readonly string[]): boolean {
  if (!(error instanceof Error)) return false;
  // A handler's error may hold anything there: a class field of that name is undefined.
  const message: unknown = error.message;
  return typeof message === 'string' && texts.some((text) => message.includes(text));
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
