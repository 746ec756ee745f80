import type { PoolClient, QueryArrayConfig, QueryArrayResult } from 'pg';
import { SENT_WITH_COMMIT } from '../idempotency/index';
import { asLostConnection, transactionWasAborted } from './pg-errors';
import { sendJoined } from './pg-joined-query';

/** What the driver adapter sends behind its BEGIN. */
const SET_TRANSACTION = 'SET TRANSACTION ';
const SET_ISOLATION_LEVEL = `${SET_TRANSACTION}ISOLATION LEVEL `;

const PLAIN_BEGIN = 'BEGIN';

const NOTHING: QueryArrayResult = { command: '', rowCount: null, oid: 0, fields: [], rows: [] };

/** Bounds of a transaction. */
export interface TransactionBounds {
  /** How long COMMIT and ROLLBACK wait for their answer, milliseconds. */
  readonly endWithinMs: number;
}

/** A statement as the driver adapter gives it, with what `pg` takes and its types leave out. */
type Statement = QueryArrayConfig<unknown[]> & { readonly query_timeout?: number; readonly queryMode?: 'extended' };

/**
 * A pooled connection for one transaction, as the driver adapter sees it. It saves the round trips in which nothing is
 * asked: BEGIN goes with the first statement, and a last one that begins with `SENT_WITH_COMMIT` with the COMMIT. A
 * transaction without a statement sends nothing.
 *
 * - COMMIT of an aborted transaction is an error here; Postgres answers it with a plain ROLLBACK.
 * - A COMMIT or ROLLBACK without an answer gives the connection up, and is an error of a lost connection: nobody knows
 *   what became of it.
 * - A connection that is not idle when it is released is closed.
 */
export class PgTransaction {
  #begin = PLAIN_BEGIN;
  /** The answer to BEGIN; undefined while nothing was sent. */
  #begun: Promise<unknown> | undefined;
  #last: Statement | undefined;
  #ended = false;
  /** A BEGIN failed, which leaves this client not knowing what the server has prepared. */
  #unusable = false;
  /** COMMIT or ROLLBACK was answered, and so was all before it. */
  #endAnswered = false;

  constructor(
    private readonly client: PoolClient,
    private readonly bounds: TransactionBounds,
  ) {
    client.on('error', ignore);
  }

  on(event: 'error', listener: (error: Error) => void): this {
    this.client.on(event, listener);
    return this;
  }

  removeListener(event: 'error', listener: (error: Error) => void): this {
    this.client.removeListener(event, listener);
    return this;
  }

  query(given: Statement): Promise<QueryArrayResult> {
    // Without a name and parameters it would go as a simple query, which may hold several statements, a COMMIT too.
    const statement: Statement = { ...given, queryMode: 'extended' };
    const { text } = statement;
    if (text === 'COMMIT') return this.#commit();
    if (text === 'ROLLBACK') return this.#rollback();
    if (this.#ended) return Promise.reject(hasEnded());
    if (text === 'BEGIN') return Promise.resolve(NOTHING);
    // Only the first: another would take the level away that was asked for.
    if (text.startsWith(SET_ISOLATION_LEVEL) && this.#begin === PLAIN_BEGIN && this.#begun === undefined) {
      this.#begin = `BEGIN ${text.slice(SET_TRANSACTION.length)}`;
      return Promise.resolve(NOTHING);
    }
    if (text.startsWith(SENT_WITH_COMMIT) && this.#last === undefined) {
      this.#last = statement;
      return Promise.resolve(NOTHING);
    }
    return this.#next(statement);
  }

  release(error?: Error | boolean): void {
    // What is still on its way would run ahead of the next one's statements, and its timer would close their connection.
    const quiet = this.#begun === undefined || this.#endAnswered;
    const mayBeLent = error === undefined && quiet && !this.#unusable && this.client.getTransactionStatus() === 'I';
    this.client.release(mayBeLent ? false : (error ?? true));
    // A pipelined client would wait for the answer before it makes room for another one.
    if (!mayBeLent) this.client.connection.stream.destroy();
    this.client.removeListener('error', ignore);
  }

  /** Sends a statement behind those before it, one that was kept back included. */
  async #next(statement: Statement): Promise<QueryArrayResult> {
    const last = this.#last;
    this.#last = undefined;
    if (last !== undefined) await this.#send(last);
    return this.#send(statement);
  }

  async #send(statement: Statement): Promise<QueryArrayResult> {
    if (this.#begun === undefined) return this.#sendFirst(statement);
    // A statement that runs before BEGIN was answered would outlive a BEGIN that failed.
    await this.#begun;
    if (this.#unusable) throw couldNotBegin();
    // Behind a ROLLBACK it would run outside of any transaction and stay.
    if (this.#ended) throw hasEnded();
    return this.client.query(statement);
  }

  #sendFirst(statement: Statement): Promise<QueryArrayResult> {
    const { answer, begun } = sendJoined(this.client, statement, this.#begin);
    const note = (): void => {
      this.#unusable = !begun();
    };
    this.#begun = answer.then(note, note);
    return answer;
  }

  async #commit(): Promise<QueryArrayResult> {
    this.#ended = true;
    const last = this.#last;
    if (this.#begun === undefined) {
      if (last === undefined) return NOTHING;
      return this.#commitBehind(this.#sendFirst(last));
    }
    await this.#begun;
    // Behind a BEGIN that failed it would run outside of any transaction and stay.
    if (this.#unusable) throw couldNotBegin();
    const joined = last && sendJoined(this.client, last, undefined);
    // The server has not heard of it, and would commit.
    if (joined?.sent() === false) await this.#end('ROLLBACK');
    return this.#commitBehind(joined?.answer);
  }

  /** Sends COMMIT without waiting for the statement before it: should that one fail, COMMIT rolls back. */
  async #commitBehind(last: Promise<QueryArrayResult> | undefined): Promise<QueryArrayResult> {
    const [before, commit] = await Promise.allSettled([last, this.#end('COMMIT')]);
    if (before.status === 'rejected') throw before.reason;
    if (commit.status === 'rejected') throw commit.reason;
    if (commit.value.command !== 'COMMIT') throw transactionWasAborted();
    return commit.value;
  }

  #rollback(): Promise<QueryArrayResult> {
    this.#ended = true;
    return this.#begun === undefined ? Promise.resolve(NOTHING) : this.#end('ROLLBACK');
  }

  #end(text: 'COMMIT' | 'ROLLBACK'): Promise<QueryArrayResult> {
    const statement: Statement = { text, rowMode: 'array', query_timeout: this.bounds.endWithinMs };
    return this.client.query(statement).then(
      (answer) => {
        this.#endAnswered = true;
        return answer;
      },
      (error: unknown) => {
        throw asLostConnection(error);
      },
    );
  }
}

function couldNotBegin(): Error {
  return new Error('the transaction could not begin; the statement was not run');
}

/** Between the pool's listener and the driver adapter's; a broken connection is an error of its statements anyway. */
function ignore(): void {}

function hasEnded(): Error {
  return new Error('the transaction has ended; the statement was not run');
}
