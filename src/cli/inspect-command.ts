import { parseArgs } from 'node:util';
import { REQUEST_ID } from '../idempotency/index';
import { type Command, type CommandContext, EXIT, type ExitCode, UsageError } from './command';
import { listParked } from './list-parked';
import { readLimit } from './read-limit';
import { findMeant, printNothing, withRecords } from './record-command';
import { recordJson, recordLines } from './record-text';
import { readRecordWords, RECORD_OPTIONS, type RecordWords } from './record-words';

/** `inspect`: what became of a key, for whoever has only that; and what is parked, for whoever has not even that. */
export const inspectCommand: Command = {
  name: 'inspect',
  usage:
    '--request-id <key> [--method <method>] [--scope <account>] [--json] | --parked [--method <method>] [--limit <n>] [--json]',
  summary: 'show what became of a request, by the key that it carried, or list what is parked',
  details: [
    'finds it whatever its scope and method, also where its day was dropped and it was kept unfinished',
    'shows state, lease, attempts, the names of its steps and the keys of its effects; never a request or an answer',
    'exits with 1 where nothing is found under a key',
    '--parked lists what waits for a person, the oldest first; it reads all records, which takes its time where they are many',
  ],
  example: 'grpc-idempotency inspect --request-id 019ab6c4-5d2e-7c3a-9f10-2b7c6d8e9f01',
  run: async (context) => {
    const options = {
      ...RECORD_OPTIONS,
      limit: { type: 'string' },
      parked: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    } as const;
    const { values } = parseArgs({ args: [...context.args], options });
    const { json, parked, limit, method } = values;
    if (!parked) {
      if (limit !== undefined) throw new UsageError('--limit: expected --parked beside it');
      return showKey(context, readRecordWords(values), json);
    }
    if (values[REQUEST_ID] !== undefined || values.scope !== undefined) {
      throw new UsageError('--parked: expected neither --request-id nor --scope beside it');
    }
    return listParked(context, { method, json, limit: readLimit(limit) });
  },
};

async function showKey(context: CommandContext, words: RecordWords, json: boolean): Promise<ExitCode> {
  const { environment, print, printError } = context;
  return withRecords({ environment, announce: json ? undefined : printError }, async (client) => {
    const meant = await findMeant(client, words);
    const { records, absent } = meant;
    if (json) print(JSON.stringify({ records: records.map(recordJson), absent }));
    else if (records.length === 0) return printNothing(context, meant);
    else for (const line of records.flatMap(recordLines)) print(line);
    return records.length === 0 ? EXIT.refused : EXIT.ok;
  });
}
