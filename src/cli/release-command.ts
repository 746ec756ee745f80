import { parseArgs } from 'node:util';
import { status } from '@grpc/grpc-js';
import { releaseRefusal, releaseSeen, type SeenRecord } from '../idempotency/index';
import type { Command } from './command';
import { changeRecord } from './record-command';
import { expiredFate, holderText, KEPT, OUTLIVED, resumption, spanOf } from './record-text';
import { CHANGE_OPTIONS, readChangeWords } from './record-words';

/** `release`: frees a request that waits for a person, or whose owner is gone, so that the next attempt goes on. */
export const releaseCommand: Command = {
  name: 'release',
  usage: '--request-id <key> --scope <account> --method <method> [--end-lease] [--dry-run] [--operator <name>]',
  summary: 'free a parked request, or one whose process is gone, so that its next attempt resumes it',
  details: [
    'its steps stay: an effect that has begun is sent again under the same key; it has nine attempts more',
    '--end-lease frees it also while an attempt runs, which then changes nothing any more',
    'who does it is recorded, and logged on standard error: --operator, else USER; --dry-run only says what would be done',
    'exits with 1 where it is refused or nothing is found',
  ],
  example:
    'grpc-idempotency release --request-id 019ab6c4-5d2e-7c3a-9f10-2b7c6d8e9f01 --scope shop-1 --method CreatePayment --operator ada',
  run: async (context) => {
    const options = { ...CHANGE_OPTIONS, 'end-lease': { type: 'boolean', default: false } } as const;
    const { values } = parseArgs({ args: [...context.args], options });
    const words = readChangeWords(values, context.environment);
    const endLease = values['end-lease'];
    return changeRecord(context, words, {
      done: 'released',
      refusal: (record) => refusalText(record, { endLease }),
      change: (client, record, by) => releaseSeen(client, record, { ...by, endLease }),
      consequences,
    });
  },
};

function refusalText(record: SeenRecord, terms: { readonly endLease: boolean }): string | undefined {
  const refusal = releaseRefusal(record, terms);
  switch (refusal) {
    case undefined:
      return undefined;
    case 'running':
      return record.pausedUntil === undefined
        ? `${holderText(record)}; ${spanOf(record.leaseLeftMs)} of the lease are left: wait for it. If its process is stuck, --end-lease frees it now`
        : `${holderText(record)}: wait for it. If the outage is over, --end-lease frees it now`;
    case 'completed':
      return `it has its answer (${status[record.code ?? 0]}): nothing to release; a retry with the same key gets it`;
    case 'expired':
      return `its answer was removed: ${expiredFate(record)}`;
    case 'kept':
      return KEPT;
    case 'outlived':
      return OUTLIVED;
  }
}

function consequences(record: SeenRecord): readonly string[] {
  const { recoveryPoint, steps = [], isRequestKept, ageMs } = record;
  const begun = steps.filter(({ isDone }) => !isDone);
  const effects = begun.map(
    ({ name, derivedKey = '' }) =>
      `mind: its effect ${name} has begun up to ${spanOf(ageMs)} ago and is sent again under ${derivedKey}: the other side ` +
      'must still know that key',
  );
  const next =
    recoveryPoint === undefined ? 'send the request again with the same key: it runs anew' : resumption(isRequestKept);
  return [...effects, `next: ${next}`];
}
