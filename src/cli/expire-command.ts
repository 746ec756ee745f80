import { parseArgs } from 'node:util';
import { expireRefusal, expireSeen, type SeenRecord } from '../idempotency/index';
import type { Command } from './command';
import { changeRecord } from './record-command';
import { expiredFate, holderText, KEPT, nextStep, spanOf } from './record-text';
import { CHANGE_OPTIONS, readChangeWords } from './record-words';

/** `expire`: removes a recorded answer and leaves a tombstone, so that the key is not run again. */
export const expireCommand: Command = {
  name: 'expire',
  usage: '--request-id <key> --scope <account> --method <method> [--dry-run] [--operator <name>]',
  summary: 'remove the recorded answer of a completed request; its key stays used, and is refused from then on',
  details: [
    'what the request has done stays done; only the answer goes, and nobody gets it back',
    'who does it is recorded, and logged on standard error: --operator, else USER; --dry-run only says what would be done',
    'exits with 1 where it is refused or nothing is found',
  ],
  example:
    'grpc-idempotency expire --request-id 019ab6c4-5d2e-7c3a-9f10-2b7c6d8e9f01 --scope shop-1 --method CreatePayment --operator ada',
  run: async (context) => {
    const { values } = parseArgs({ args: [...context.args], options: CHANGE_OPTIONS });
    const words = readChangeWords(values, context.environment);
    return changeRecord(context, words, {
      done: 'expired',
      refusal: refusalText,
      change: expireSeen,
      consequences: (record) => [`next: ${expiredFate(record)}`],
    });
  },
};

function refusalText(record: SeenRecord): string | undefined {
  const refusal = expireRefusal(record);
  switch (refusal) {
    case undefined:
      return undefined;
    case 'running':
      return record.pausedUntil === undefined
        ? `${holderText(record)}; ${spanOf(record.leaseLeftMs)} of the lease are left: there is no answer yet; wait for it`
        : `${holderText(record)}: there is no answer yet; wait for it`;
    case 'unstarted':
      return 'it has no answer, and no step of it is recorded: its key is free for a retry';
    case 'half_finished':
    case 'parked':
      return `it has no answer, and somebody may have been charged: ${nextStep(record)}`;
    case 'expired':
      return `it is expired already: ${expiredFate(record)}`;
    case 'kept':
      return KEPT;
  }
}
