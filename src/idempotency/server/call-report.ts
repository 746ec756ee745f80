import type { AdmissionOutcome, PublishedFields, ServerEventListener } from '../events';
import type { MethodPolicy } from '../policy';
import type { Admitted } from './admission';
import type { WireReply } from './reply';

/** Whose call it is, as far as that is known. */
export interface CallOrigin {
  readonly scope?: string;
  /** The key, where it can be one. */
  readonly requestId?: string | undefined;
}

/** Tells the listener about one call: how it was received, and in one line how it ended. */
export interface CallReport {
  /** The call ends before it could be decided about; tells nothing where it was, since one call is counted once. */
  notAdmitted(outcome: AdmissionOutcome, from: CallOrigin): void;
  /** The call was admitted, replayed or refused. */
  admitted(scope: string, admitted: Admitted): void;
  /** The call was answered. */
  ended(reply: WireReply, published: PublishedFields): void;
  /** Something broke whose cause the caller is not told. */
  fault(what: string, error: unknown): void;
}

/**
 * Reports a call of a method that takes keys; of others only faults are told.
 *
 * @param clientVersion which client sent it; asked where that matters
 */
export function createCallReport(
  policy: MethodPolicy,
  onEvent: ServerEventListener,
  clientVersion?: () => string,
): CallReport {
  const { path } = policy;
  const startedAt = performance.now();
  let line:
    { outcome: AdmissionOutcome; scope?: string; requestId?: string; attempt?: number; observed?: true } | undefined;
  return {
    notAdmitted: (outcome, { scope, requestId }) => {
      if (line !== undefined) return;
      line = { outcome };
      if (scope !== undefined) line.scope = scope;
      if (requestId !== undefined) line.requestId = requestId;
      onEvent({ type: 'admitted', path, outcome });
    },

    admitted: (scope, { admission, requestId, keyAgeMs, claimed, isSuspect }) => {
      line = { outcome: admission.outcome, scope };
      if (requestId !== undefined) line.requestId = requestId;
      if (admission.kind === 'run') line.attempt = admission.claim.attempt;
      if (admission.kind === 'run_unclaimed' && admission.observed) line.observed = true;
      if (claimed !== undefined) {
        const { durationMs, outcome } = claimed;
        onEvent({ type: 'claim', path, durationMs });
        if (outcome.kind === 'granted' && outcome.takeover) onEvent({ type: 'takeover', path });
        if (outcome.kind === 'parked' && outcome.now) onEvent({ type: 'parked', path, requestId });
        if (outcome.kind === 'unavailable') {
          onEvent({ type: 'fault', path, requestId, what: 'a key could not be claimed', error: outcome.error });
        }
      }
      onEvent({
        type: 'admitted',
        path,
        outcome: admission.outcome,
        ...(admission.outcome === 'mismatch' && clientVersion !== undefined ? { clientVersion: clientVersion() } : {}),
        ...('recordedCode' in admission ? { recordedCode: admission.recordedCode } : {}),
        ...(line.observed === undefined ? {} : { observed: true }),
        ...(keyAgeMs === undefined ? {} : { keyAgeMs }),
      });
      if (isSuspect === true) onEvent({ type: 'regenerated_key_suspect', path });
    },

    ended: ({ status, reason, rejected, error, record }, published) => {
      if (line === undefined) return;
      onEvent({
        type: 'call',
        path,
        requestId: line.requestId,
        scope: line.scope,
        outcome: line.outcome,
        code: status.code,
        ...(reason === undefined ? {} : { reason }),
        ...(rejected === undefined ? {} : { rejected }),
        ...(error === undefined ? {} : { error }),
        ...(record === undefined ? {} : { recordState: record.state }),
        ...(line.attempt === undefined ? {} : { attempt: line.attempt }),
        ...(line.observed === undefined ? {} : { observed: true }),
        durationMs: performance.now() - startedAt,
        published: record?.resource === undefined ? published : { ...published, resource: record.resource },
      });
    },

    fault: (what, error) => onEvent({ type: 'fault', path, requestId: line?.requestId, what, error }),
  };
}
