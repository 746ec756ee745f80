import { type Metadata, status } from '@grpc/grpc-js';
import { UnreadableRequestError } from '../canonical-form';
import { StatusError } from '../errors';
import type { MethodPolicy } from '../policy';
import { type AdmissionOptions, admit } from './admission';
import type { CallContext } from './call-context';
import type { CallReport } from './call-report';
import type { Identification } from './principal';
import * as refusals from './refusals';
import { type WireReply, wireReply } from './reply';

/** A call of a method that takes keys, whose request is complete. */
export interface CompleteCall {
  readonly policy: MethodPolicy;
  readonly metadata: Metadata;
  /** The request as it came over the wire. */
  readonly request: Buffer;
  readonly identification: Identification;
  readonly report: CallReport;
  /** When the caller stops waiting, epoch milliseconds; Infinity when never. */
  readonly deadlineMs: number;
  /** Fires when the caller has stopped waiting. */
  readonly cancelled: AbortSignal;
}

/** Where a call goes: to its handler, or back with a reply. */
export type Entrance =
  | { readonly kind: 'pass'; readonly context: CallContext }
  | { readonly kind: 'turned_back'; readonly reply: WireReply };

/**
 * Decides about a call: its identity first, since nothing is looked up for a stranger; then its key. A fault of ours is
 * INTERNAL to the caller and told to the listener. Never rejects.
 */
export async function enter<Tx>(options: AdmissionOptions<Tx>, call: CompleteCall): Promise<Entrance> {
  try {
    return await decide(options, call);
  } catch (error) {
    if (error instanceof UnreadableRequestError) return turnedBack(wireReply({ kind: 'status', error: unreadable() }));
    call.report.fault('the call could not be admitted', error);
    return turnedBack(wireReply({ kind: 'fault' }));
  }
}

async function decide<Tx>(options: AdmissionOptions<Tx>, call: CompleteCall): Promise<Entrance> {
  const { identification, report } = call;
  if (identification.kind === 'failed') throw identification.error;
  if (identification.kind === 'unknown') {
    report.unidentified();
    return turnedBack(wireReply({ kind: 'refuse', refusal: refusals.principalMissing() }));
  }
  const { scope } = identification;
  const open = { scope, requestId: undefined, claimed: undefined, rebuild: undefined, report, started: false };

  const admitted = await admit(options, { ...call, scope });
  report.admitted(scope, admitted);
  const { admission, requestId } = admitted;
  switch (admission.kind) {
    case 'run':
      return { kind: 'pass', context: { ...open, requestId, claimed: admission } };
    case 'run_unclaimed':
      return { kind: 'pass', context: open };
    case 'rebuild':
      return { kind: 'pass', context: { ...open, requestId, rebuild: admission.found } };
    case 'replay':
    case 'refuse':
      return turnedBack(wireReply(admission.reply));
  }
}

/** The decoder of the service may take it for a message, but it is more than may be compared. */
function unreadable(): StatusError {
  return new StatusError(
    status.INVALID_ARGUMENT,
    'the request is nested too deeply, holds too many fields, or is not a message of its type',
  );
}

function turnedBack(reply: WireReply): Entrance {
  return { kind: 'turned_back', reply };
}
