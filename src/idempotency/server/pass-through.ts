import { ServerInterceptingCall, type ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { CallContexts } from './call-context';
import type { CallReport } from './call-report';
import { type Identification, identify, type Principal } from './principal';
import * as refusals from './refusals';
import { type WireReply, wireReply } from './reply';
import type { RunningCalls } from './running-calls';
import { unlessAborted } from './unless-aborted';
import { ReceivedRequest } from './wire-messages';

/** What letting calls through works with. */
export interface PassThroughOptions {
  readonly principal: Principal;
  readonly contexts: CallContexts;
  readonly running: RunningCalls;
  /** Answers a call that is not let through. */
  readonly send: (call: ServerInterceptingCallInterface, reply: WireReply, report: CallReport) => void;
}

/**
 * Lets the calls of a method that ignores keys through: the caller is identified, and nothing else is done. There is no
 * claim to give back, so a caller who hangs up only ends the wait for `principal`; where that gives no promise, nothing
 * waits.
 *
 * @param report tells of faults; the same for all calls of the method
 */
export function passThrough(
  { principal, contexts, running, send }: PassThroughOptions,
  path: string,
  report: CallReport,
  call: ServerInterceptingCallInterface,
): ServerInterceptingCall {
  let identification: Identification | Promise<Identification> = { kind: 'unknown' };
  let letThrough: (scope: string) => void = () => undefined;
  let gone: AbortController | undefined;

  const decide = (identified: Identification, pass: () => void): void => {
    switch (identified.kind) {
      case 'identified':
        letThrough(identified.scope);
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
        onReceiveMetadata: (metadata, pass) => {
          identification = identify(principal, path, metadata, call);
          letThrough = (scope) =>
            contexts.set(metadata, {
              ...{ scope, requestId: undefined, claimed: undefined, rebuild: undefined, report, started: false },
            });
          pass(metadata);
        },
        onReceiveMessage: (message: unknown, pass) => {
          if (message instanceof ReceivedRequest) return pass(message.message);
          report.fault('the service was not registered with addService of this library', undefined);
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
