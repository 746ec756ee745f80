import { parseArgs } from 'node:util';
import { readConfig } from '../config';
import { connect } from '../database/connect';
import { type RetentionEvent, runRetention } from '../idempotency/index';
import { type Command, EXIT } from './command';
import { withTables } from './command-database';

/**
 * `maintain`: runs one round of retention now, as the service does every hour. For a service whose own role may not
 * create and drop tables, and for whoever does not want to wait.
 */
export const maintainCommand: Command = {
  name: 'maintain',
  usage: '',
  summary: 'create the days ahead, drop those that are over, and delete undated records whose retention is over',
  details: ['the service does it every hour by itself, if its role may create and drop tables'],
  example: 'grpc-idempotency maintain',
  run: async ({ args, environment, print, printError: announce }) => {
    parseArgs({ args: [...args], options: {} });
    return withTables({ config: readConfig(environment), announce }, async (connectionString) => {
      const database = connect({ connectionString });
      try {
        const onEvent = (event: RetentionEvent): void => print(lineOf(event));
        const { elected, faults, postponed } = await runRetention({ client: database.maintenance, onEvent });
        if (!elected) print('refused: another process is maintaining these records; try again in a minute');
        return elected && faults.length === 0 && postponed.length === 0 ? EXIT.ok : EXIT.refused;
      } finally {
        await database.close();
      }
    });
  },
};

function lineOf(event: RetentionEvent): string {
  switch (event.type) {
    case 'day_created':
      return `created the day ${event.day}`;
    case 'day_dropped':
      return `dropped the day ${event.day}${event.kept > 0 ? `, and kept ${event.kept} unfinished of its records` : ''}`;
    case 'day_held_back':
      return `left the day ${event.day}: an attempt still runs in it`;
    case 'day_postponed':
      return `left the day ${event.day}: open transactions may still use it; run this again`;
    case 'purged':
      return `deleted ${event.records} undated records of ${event.path}`;
    case 'observed': {
      const { partitions, records, kept, sampled } = event.observation;
      const counts = Object.entries(records).map(([state, count]) => `${sampled ? 'about ' : ''}${count} ${state}`);
      return `${partitions} partitions; records: ${counts.join(', ') || 'none'}; kept from dropped days: ${kept}`;
    }
    case 'fault': {
      const reason = event.error instanceof Error ? event.error.message.trim() : String(event.error);
      const advice = event.missingRight ? 'the role of DATABASE_URL does not own the tables of records: ' : '';
      return `failed to ${event.step.replaceAll('_', ' ')}: ${advice}${reason}`;
    }
  }
}
