import { parseArgs } from 'node:util';
import { readConfig } from '../config';
import { connect } from '../database/connect';
import type { SqlClient } from '../idempotency/index';
import { listUndelivered, requeueAll, requeueEvent, type UndeliveredEvent } from '../outbox/requeue';
import { refundTermsOf } from '../payments/refund-event';
import { type Command, type CommandContext, EXIT, type ExitCode, UsageError } from './command';
import { withTables } from './command-database';
import { MAYBE_MORE, readLimit } from './read-limit';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** `outbox`: shows what waits to be delivered, the parked events first, and sends parked ones again. */
export const outboxCommand: Command = {
  name: 'outbox',
  usage: '[list [--limit <n>] | requeue <event-id> [--new-id] | requeue --all]',
  summary: 'show events that are not delivered, parked ones first, and send parked ones again',
  details: [
    'requeue <event-id> sends a parked event again under its id, requeue --all all of them',
    '--new-id sends it under a new one, which its consumer takes for a new message',
  ],
  example: 'grpc-idempotency outbox requeue --all',
  run: async (context) => {
    const work = readWork(context);
    const use = { config: readConfig(context.environment), announce: context.printError };
    return withTables(use, async (connectionString) => {
      const database = connect({ connectionString });
      try {
        return await work(database.business);
      } finally {
        await database.close();
      }
    });
  },
};

type Work = (client: SqlClient) => Promise<ExitCode>;

/** Understands the words before anything is connected. */
function readWork({ args, print }: CommandContext): Work {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { limit: { type: 'string' }, 'new-id': { type: 'boolean' }, all: { type: 'boolean' } },
  });
  const { limit, all, 'new-id': newId } = values;
  const [what = 'list', id, ...others] = positionals;
  if (what === 'list' && id === undefined && newId === undefined && all === undefined)
    return list(print, readLimit(limit));
  const isRequeue = what === 'requeue' && limit === undefined;
  if (isRequeue && all && id === undefined && newId === undefined) return requeueParked(print);
  if (isRequeue && all === undefined && id !== undefined && others.length === 0) {
    if (!UUID.test(id)) throw new UsageError('requeue: expected the id of an event, as the list shows it');
    return requeue(print, id.toLowerCase(), newId ?? false);
  }
  throw new UsageError('expected list [--limit <n>], requeue <event-id> [--new-id], or requeue --all');
}

function list(print: CommandContext['print'], limit: number): Work {
  return async (client) => {
    const events = await listUndelivered(client, limit);
    for (const event of events) print(lineOf(event));
    if (events.length === 0) print('every event is delivered');
    else if (events.length === limit) print(MAYBE_MORE);
    return EXIT.ok;
  };
}

function lineOf({ id, state, type, aggregateType, aggregateId, attempts, ageMs, lastError }: UndeliveredEvent): string {
  const error = lastError === null ? '' : `, last error: ${lastError}`;
  const age = `${Math.round(ageMs / 1_000)} s old`;
  const line = `${state}  ${id}  ${type}  ${aggregateType}/${aggregateId}  ${age}, ${attempts} failed deliveries${error}`;
  // One line an event, whatever a consumer said; and nothing that a terminal would obey.
  return line.replace(/\p{Cc}+/gu, ' ');
}

function requeue(print: CommandContext['print'], eventId: string, newId: boolean): Work {
  return async (client) => {
    const outcome = await requeueEvent(client, eventId, { newId, termsOf: refundTermsOf });
    switch (outcome.kind) {
      case 'requeued':
        print(`requeued ${outcome.id}${newId ? `, which was ${eventId}` : ''}`);
        return EXIT.ok;
      case 'not_parked':
        print(`refused: no parked event has the id ${eventId}`);
        return EXIT.refused;
      case 'too_old':
        print(
          'refused: its consumer would refuse the id as expired. Find out there whether an earlier delivery had its ' +
            'effect; if it had none, send it again with --new-id',
        );
        return EXIT.refused;
    }
  };
}

function requeueParked(print: CommandContext['print']): Work {
  return async (client) => {
    const { requeued, tooOld } = await requeueAll(client, { termsOf: refundTermsOf });
    print(`requeued ${requeued} parked events`);
    if (tooOld > 0) print(`left ${tooOld} whose id their consumer would refuse as expired; requeue them one by one`);
    return tooOld === 0 ? EXIT.ok : EXIT.refused;
  };
}
