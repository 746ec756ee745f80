import { refuseTransactionControl } from './transaction-control';

/**
 * A transaction client that can be closed. A handler may keep `tx` and use it too late, or start a write and not wait
 * for it; such a statement could run between the fence and COMMIT, fail there, and turn the commit into a rollback that
 * Prisma reports as a success. So every call is counted, and once sealed none is let through.
 */
export interface SealedTransaction<Tx> {
  /** What the handler gets. */
  readonly tx: Tx;
  /**
   * Ends the use of `tx`.
   *
   * @throws {UnfinishedStatementError} when a statement was started or made and not awaited
   */
  seal(): void;
  /** Ends it too, where it has failed anyway. */
  close(): void;
  /** Whether every statement that was started has ended. */
  isIdle(): boolean;
}

/** A handler left a statement of its transaction un-awaited, so nobody can say whether it is part of the commit. */
export class UnfinishedStatementError extends Error {
  override readonly name = 'UnfinishedStatementError';

  /** @param operations what was called on `tx`, as `payment.create` */
  constructor(readonly operations: readonly string[]) {
    super(`not awaited inside the transaction: ${operations.join(', ')}; await every statement before returning`);
  }
}

/**
 * What may be called on the client itself: raw queries, but for those that end the transaction. Whatever else starts with
 * `$` opens a way around: a nested `$transaction` hands out a client that nobody counts.
 */
const OFFERED: ReadonlySet<string> = new Set([
  '$executeRaw',
  '$executeRawUnsafe',
  '$queryRaw',
  '$queryRawTyped',
  '$queryRawUnsafe',
]);

/** Wraps a transaction client, its models included. */
export function sealable<Tx extends object>(client: Tx): SealedTransaction<Tx> {
  const unfinished = new Map<symbol, string>();
  let sealed = false;
  let running = 0;

  /** Rejects and does not throw: what a timer of a handler starts too late would end the process. */
  const tooLate = (operation: string): Promise<never> => {
    const refused = Promise.reject<never>(
      new Error(`${operation} after the transaction's function had returned; it was not run`),
    );
    refused.catch(() => undefined);
    return refused;
  };

  /** Prisma's queries run when they are awaited, so one that nobody awaits is lost without a trace. */
  const watch = (operation: string, query: PromiseLike<unknown>): PromiseLike<unknown> => {
    const mark = Symbol(operation);
    unfinished.set(mark, operation);
    const finish = (): void => void unfinished.delete(mark);
    let run: Promise<unknown> | undefined;
    const start = (): Promise<unknown> => {
      if (run === undefined) {
        if (sealed) return (run = tooLate(operation));
        run = Promise.resolve(query);
        running += 1;
        run.then(finish, finish).finally(() => (running -= 1));
      }
      return run;
    };
    const chain = (name: string, result: unknown): unknown => {
      finish();
      return isThenable(result) ? watch(`${operation}.${name}`, result) : result;
    };
    return lazyPromise(query, start, chain);
  };

  const wrap = <T extends object>(target: T, path: string): T =>
    new Proxy(target, {
      get: (inner, name) => {
        const value: unknown = Reflect.get(inner, name);
        if (typeof name === 'symbol') return value;
        const operation = path === '' ? name : `${path}.${name}`;
        if (name.startsWith('$') && !OFFERED.has(name)) {
          return typeof value === 'function' ? () => refuse(operation) : undefined;
        }
        if (typeof value === 'function') {
          return (...values: unknown[]): unknown => {
            if (sealed) return tooLate(operation);
            if (OFFERED.has(name)) refuseTransactionControl(operation, values);
            const result: unknown = Reflect.apply(value, inner, values);
            return isThenable(result) ? watch(operation, result) : result;
          };
        }
        return typeof value === 'object' && value !== null ? wrap(value, operation) : value;
      },
    });

  return {
    tx: wrap(client, ''),
    seal: () => {
      sealed = true;
      if (unfinished.size > 0) throw new UnfinishedStatementError([...unfinished.values()]);
    },
    close: () => {
      sealed = true;
    },
    isIdle: () => running === 0,
  };
}

function refuse(operation: string): never {
  throw new Error(`${operation} is not offered inside complete: it would run statements that the fence does not cover`);
}

/**
 * Looks like `query`, but starts through `start`; a method that makes another query of it (Prisma's fluent relations)
 * goes through `chain`.
 */
function lazyPromise(
  query: PromiseLike<unknown>,
  start: () => Promise<unknown>,
  chain: (name: string, result: unknown) => unknown,
): PromiseLike<unknown> {
  // Who walks away from a statement that then fails is told so by `seal` or by the aborted transaction; the unhandled
  // rejection would end the process.
  const handled = (next: Promise<unknown>): Promise<unknown> => {
    start().catch(() => next.catch(() => undefined));
    return next;
  };
  const own: Record<string, unknown> = {
    then: (...handlers: Parameters<Promise<unknown>['then']>) => handled(start().then(...handlers)),
    catch: (handler: Parameters<Promise<unknown>['catch']>[0]) => handled(start().catch(handler)),
    finally: (handler: Parameters<Promise<unknown>['finally']>[0]) => handled(start().finally(handler)),
  };
  return new Proxy(query, {
    get: (inner, name) => {
      const value: unknown = Reflect.get(inner, name);
      if (typeof name === 'symbol') return value;
      if (name in own) return own[name];
      if (typeof value !== 'function') return value;
      return (...values: unknown[]): unknown => chain(name, Reflect.apply(value, inner, values));
    },
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
