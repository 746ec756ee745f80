import { Metadata, ServerInterceptingCall, type ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { ServerEventListener } from '../events';
import type { MethodPolicy } from '../policy';
import type { CallContexts } from './call-context';
import { type CallReport, createCallReport } from './call-report';
import { type Identification, identify, type Principal } from './principal';
import * as refusals from './refusals';
import { type WireReply, wireReply } from './reply';
import type { RunningCalls } from './running-calls';
import { unlessAborted } from './unless-aborted';
import { isUnsafeResend } from './unsafe-resend';
import { ReceivedRequest } from './wire-messages';

/** Until some has arrived; one for all, since this is the path of the reads. */
const NO_METADATA = new Metadata();

/** What letting calls through works with. */
export interface PassThroughOptions {
  readonly principal: Principal;
  readonly contexts: CallContexts;
  readonly running: RunningCalls;
  readonly onEvent: ServerEventListener;
  /** Answers a call that is not let through. */
  readonly send: (call: ServerInterceptingCallInterface, reply: WireReply, report: CallReport) => void;
}

/**
 * Lets the calls of a method that ignores keys through: the caller is identified, and nothing else is done, but that one
 * of unknown level is not run for a call that was resent on the way (`KEYLESS_RETRY`). There is no claim to give back, so a
 * caller who hangs up only ends the wait for `principal`; where that gives no promise, nothing waits.
 *
 * @param report tells of faults; the same for all calls of the method
 */
export function passThrough(
  { principal, contexts, running, onEvent, send }: PassThroughOptions,
  policy: MethodPolicy,
  report: CallReport,
  call: ServerInterceptingCallInterface,
): ServerInterceptingCall {
  let identification: Identification | Promise<Identification> = { kind: 'unknown' };
  let metadata = NO_METADATA;
  let gone: AbortController | undefined;

  const refuseResend = (scope: string): void => {
    const resent = createCallReport(policy, onEvent);
    const reply = wireReply({ kind: 'refuse', refusal: refusals.ignoredKeyRetry(policy.path) });
    resent.notAdmitted('keyless_retry', { scope });
    resent.ended(reply, {});
    send(call, reply, resent);
  };

  const decide = (identified: Identification, pass: () => void): void => {
    switch (identified.kind) {
      case 'identified':
        if (isUnsafeResend(policy, metadata)) return refuseResend(identified.scope);
        contexts.set(metadata, {
          ...{ scope: identified.scope, requestId: undefined, claimed: undefined, rebuild: undefined },
          ...{ report, started: false },
        });
        return pass();
      case 'unknown':
        return send(call, wireReply({ kind: 'refuse', refusal: refusals.principalMissing() }), report);
      case 'failed':
        report.fault('the call could not be admitted', identified.error);
        return send(call, wireReply({ kind: 'fault' }), report);
    }
  };

  return new ServerInterceptingCall(call, {
    start: (next) =>
      next({
        onReceiveMetadata: (arrived, pass) => {
          metadata = arrived;
          identification = identify(principal, policy.path, metadata, call);
          pass(metadata);
        },
        onReceiveMessage: (message: unknown, pass) => {
          if (message instanceof ReceivedRequest) return pass(message.message);
          report.fault(
            'the service was not registered by idempotency.addService(server, definition, handlers)',
            undefined,
          );
          send(call, wireReply({ kind: 'fault' }), report);
        },
        onReceiveHalfClose: (pass) => {
          if (!(identification instanceof Promise)) return decide(identification, pass);
          gone = new AbortController();
          const decided = unlessAborted(identification, gone.signal).then((identified) => {
            if (identified !== undefined) decide(identified, pass);
          });
          running.track(decided);
        },
        onCancel: () => gone?.abort(),
      }),
  });
}
