import { type Metadata, status } from '@grpc/grpc-js';
import { UnreadableRequestError } from '../canonical-form';
import { StatusError } from '../errors';
import type { MethodPolicy } from '../policy';
import type { IdempotencyStore } from '../store/store';
import { admit } from './admission';
import type { CallContext } from './call-context';
import type { CallReport } from './call-report';
import type { Identification } from './principal';
import * as refusals from './refusals';
import { type WireReply, wireReply } from './reply';

/** A call whose request is complete. */
export interface CompleteCall {
  readonly policy: MethodPolicy;
  readonly metadata: Metadata;
  /** The request as it came over the wire. */
  readonly request: Buffer;
  readonly identification: Identification;
  readonly report: CallReport;
}

/** Where a call goes: to its handler, or back with a reply. */
export type Entrance =
  | { readonly kind: 'pass'; readonly context: CallContext }
  | { readonly kind: 'turned_back'; readonly reply: WireReply };

/**
 * Decides about a call: its identity first, since nothing is looked up for a stranger; then its key. A fault of ours is
 * INTERNAL to the caller and told to the listener. Never rejects.
 */
export async function enter<Tx>(
  store: IdempotencyStore<Tx>,
  requestIdName: string,
  call: CompleteCall,
): Promise<Entrance> {
  try {
    return await decide(store, requestIdName, call);
  } catch (error) {
    if (error instanceof UnreadableRequestError) return turnedBack(wireReply({ kind: 'status', error: unreadable() }));
    call.report.fault('the call could not be admitted', error);
    return turnedBack(wireReply({ kind: 'fault' }));
  }
}

async function decide<Tx>(
  store: IdempotencyStore<Tx>,
  requestIdName: string,
  { policy, metadata, request, identification, report }: CompleteCall,
): Promise<Entrance> {
  if (identification.kind === 'failed') throw identification.error;
  if (identification.kind === 'unknown') {
    report.unidentified();
    return turnedBack(wireReply({ kind: 'refuse', refusal: refusals.principalMissing() }));
  }
  const { scope } = identification;
  const open = { scope, requestId: undefined, claimed: undefined, report, started: false };
  if (policy.key === 'IGNORED') return { kind: 'pass', context: open };

  const admitted = await admit(store, requestIdName, { policy, metadata, scope, request });
  report.admitted(scope, admitted);
  const { admission, requestId } = admitted;
  switch (admission.kind) {
    case 'run':
      return { kind: 'pass', context: { ...open, requestId, claimed: admission } };
    case 'run_unclaimed':
      return { kind: 'pass', context: open };
    case 'replay':
      return turnedBack(wireReply({ ...admission, kind: 'answer', replayed: true }));
    case 'refuse':
      return turnedBack(wireReply(admission));
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
