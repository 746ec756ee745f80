import type { Metadata } from '@grpc/grpc-js';
import type { MethodPolicy } from '../policy';
import { parseKey } from '../key';
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
  /** Undefined where the caller has gone before it was known. */
  readonly identification: Identification | undefined;
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
    const { identification, report } = call;
    const scope = identification?.kind === 'identified' ? { scope: identification.scope } : {};
    report.notAdmitted('store_unavailable', { ...scope, requestId: keyOf(options, call) });
    return faulty(call, error);
  }
}

async function decide<Tx>(options: AdmissionOptions<Tx>, call: CompleteCall): Promise<Entrance> {
  const { identification, report } = call;
  if (identification?.kind !== 'identified') return unidentified(options, call, identification);
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

/** Whose call it is is not known: nothing is looked up, and its line has what it says of its key. */
function unidentified<Tx>(
  options: AdmissionOptions<Tx>,
  call: CompleteCall,
  identification: Exclude<Identification, { kind: 'identified' }> | undefined,
): Entrance {
  call.report.notAdmitted('principal_missing', { requestId: keyOf(options, call) });
  switch (identification?.kind) {
    case 'unknown':
      return turnedBack(wireReply({ kind: 'refuse', refusal: refusals.principalMissing() }));
    case 'failed':
      return faulty(call, identification.error);
    case undefined:
      return turnedBack(wireReply({ kind: 'status', error: refusals.callerGone() }));
  }
}

function keyOf<Tx>({ requestIdName }: AdmissionOptions<Tx>, { policy, metadata }: CompleteCall): string | undefined {
  const reading = parseKey(metadata.get(requestIdName), policy.keyFormat);
  return reading.kind === 'key' ? reading.key.text : undefined;
}

function faulty({ report }: CompleteCall, error: unknown): Entrance {
  report.fault('the call could not be admitted', error);
  return turnedBack(wireReply({ kind: 'fault' }));
}

function turnedBack(reply: WireReply): Entrance {
  return { kind: 'turned_back', reply };
}
