import { type Connection, type PoolClient, Query, type QueryArrayConfig, type QueryArrayResult } from 'pg';

/** A statement that is on its way. */
export interface JoinedQuery {
  readonly answer: Promise<QueryArrayResult>;
  /** Whether the BEGIN that it took along was carried out; true where it took none. */
  begun(): boolean;
  /** Whether the server gets it: false at once where its values can't be written. */
  sent(): boolean;
}

/** What `pg`'s Query has and its types leave out: this file's hold on the inside of `pg`. */
interface QueryInternals {
  name: string | undefined;
  submit(connection: Connection): Error | null;
  handleCommandComplete(message: unknown, connection: Connection): void;
}

const base = Query.prototype as unknown as QueryInternals;

/**
 * Sends a statement in one write with what belongs to it: a BEGIN before it, and whatever is sent behind it before this
 * turn of the event loop ends. Every write wakes the server up and costs as much as a small statement.
 *
 * BEGIN and the statement stand before the same Sync, so a BEGIN that fails takes the statement with it; after a Sync of
 * its own, the statement would run outside of any transaction and stay.
 *
 * It overrides two methods of `pg` that are not documented; `test/unit/pg-internals.test.ts` tells when they move.
 *
 * @param begin the text that starts the transaction; undefined within one
 */
export function sendJoined(
  client: PoolClient,
  statement: QueryArrayConfig<unknown[]>,
  begin: string | undefined,
): JoinedQuery {
  const query = new Query(statement) as unknown as QueryInternals;
  const { name } = query;
  let begun = begin === undefined;
  let sent = true;

  const submit = (connection: Connection): Error | null => {
    const { stream } = connection;
    stream.cork();
    process.nextTick(() => stream.uncork());
    if (begin !== undefined) {
      connection.parse({ name: '', text: begin, types: [] }, true);
      connection.bind({}, true);
      connection.execute({}, true);
    }
    const failure = base.submit.call(query, connection);
    if (failure !== null) sent = false;
    if (begin === undefined) return failure;
    // The answer to parsing BEGIN must not be taken for the answer to parsing the statement of this name.
    query.name = undefined;
    return failure;
  };

  const handleCommandComplete = (message: unknown, connection: Connection): void => {
    if (begun) {
      base.handleCommandComplete.call(query, message, connection);
      return;
    }
    begun = true;
    query.name = name;
  };

  const answer = new Promise<QueryArrayResult>((resolve, reject) => {
    const callback = (error: Error | null, result: QueryArrayResult): void => {
      if (error === null) {
        resolve(result);
        return;
      }
      sent = false;
      reject(error);
    };
    client.query(Object.assign(query, { submit, handleCommandComplete, callback }));
  });
  return { answer, begun: () => begun, sent: () => sent };
}
