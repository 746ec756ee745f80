import { parseArgs } from 'node:util';
import { type Command, EXIT } from './command';
import { findMeant, printNothing, withRecords } from './record-command';
import { recordJson, recordLines } from './record-text';
import { readRecordWords, RECORD_OPTIONS } from './record-words';

/** `inspect`: what became of a key, for whoever has only that. */
export const inspectCommand: Command = {
  name: 'inspect',
  usage: '--request-id <key> [--method <method>] [--scope <account>] [--json]',
  summary: 'show what became of a request, by the key that it carried',
  details: [
    'finds it whatever its scope and method, also where its day was dropped and it was kept unfinished',
    'shows state, lease, attempts, the names of its steps and the keys of its effects; never a request or an answer',
    'exits with 1 where nothing is found',
  ],
  example: 'grpc-idempotency inspect --request-id 019ab6c4-5d2e-7c3a-9f10-2b7c6d8e9f01',
  run: async (context) => {
    const options = { ...RECORD_OPTIONS, json: { type: 'boolean', default: false } } as const;
    const { values } = parseArgs({ args: [...context.args], options });
    const words = readRecordWords(values);
    return withRecords(context, async (client) => {
      const meant = await findMeant(client, words);
      const { records, absent } = meant;
      if (values.json) context.print(JSON.stringify({ records: records.map(recordJson), absent }));
      else if (records.length === 0) return printNothing(context, meant);
      else for (const line of records.flatMap(recordLines)) context.print(line);
      return records.length === 0 ? EXIT.refused : EXIT.ok;
    });
  },
};
