import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { ServerEvent, ServerEventListener } from '../events';
import type { MethodPolicy, PolicyRegistry } from '../policy';
import type { AdmissionOptions } from './admission';
import type { CallContext, CallContexts, Claimed } from './call-context';
import { type CallReport, createCallReport } from './call-report';
import type { ClientVersions } from './client-version';
import { enter } from './entrance';
import { passThrough } from './pass-through';
import { type Identification, identify, type Principal } from './principal';
import * as refusals from './refusals';
import { type WireReply, wireReply } from './reply';
import type { RunningCalls } from './running-calls';
import { assertSendable } from '../wire/header-block';
import { unlessAborted } from './unless-aborted';
import { ReceivedRequest, SerializedResponse } from './wire-messages';

/** What the interceptor works with. */
export interface InterceptorOptions<Tx> extends AdmissionOptions<Tx> {
  readonly policies: PolicyRegistry;
  readonly principal: Principal;
  readonly contexts: CallContexts;
  readonly running: RunningCalls;
  readonly onEvent: ServerEventListener;
  readonly clientVersions: ClientVersions;
}

/**
 * Stands between the wire and the handlers (gRFC L112): identifies the caller, decides by the method's policy, and
 * answers itself or lets the call through. Methods that no policy knows (health, reflection) and streams pass untouched.
 */
export function createServerInterceptor<Tx>(options: InterceptorOptions<Tx>): ServerInterceptor {
  const passing = { ...options, send };
  const reports = new Map<string, CallReport>();
  /** Of a method that ignores keys only faults are told, whichever call they are of. */
  const reportOf = (policy: MethodPolicy): CallReport => {
    const report = reports.get(policy.path) ?? createCallReport(policy, options.onEvent);
    reports.set(policy.path, report);
    return report;
  };
  return (method, call) => {
    const policy = options.policies.get(method.path);
    const unary = !method.requestStream && !method.responseStream;
    if (policy === undefined || !unary) return new ServerInterceptingCall(call);
    if (policy.key !== 'IGNORED') return interceptUnary(options, policy, call);
    return passThrough(passing, policy, reportOf(policy), call);
  };
}

/** Why a call has no caller any more; a reason of its own, since one made anew costs a stack for every call that ends. */
const CALLER_GONE = new Error('the caller has stopped waiting');

/** Waits at half-close, when the request is complete: a handler never starts before its claim is committed (case J11). */
function interceptUnary<Tx>(
  options: InterceptorOptions<Tx>,
  policy: MethodPolicy,
  call: ServerInterceptingCallInterface,
): ServerInterceptingCall {
  const { store, contexts } = options;
  const report = createCallReport(policy, options.onEvent, () => options.clientVersions(metadata));
  let metadata = new Metadata();
  let identification: Identification | Promise<Identification>;
  let received: ReceivedRequest | undefined;
  let context: CallContext | undefined;
  const cancelled = new AbortController();

  /** Once a call is cancelled grpc-js starts no handler, so nobody else would tell its end or give the claim back. */
  const endIfNotStarted = (): void => {
    if (!cancelled.signal.aborted || context === undefined || context.started) return;
    const { claimed } = context;
    context = undefined;
    report.ended(wireReply({ kind: 'status', error: refusals.callerGone() }), {});
    if (claimed === undefined) return;
    const released = store.releaseIfHeld(claimed.claim).then(
      (held) => options.onEvent(held ? givenBack(claimed) : { type: 'fenced', path: policy.path }),
      (error: unknown) => report.fault('a claim could not be released; it ends with its lease at the latest', error),
    );
    options.running.track(released);
  };

  const admitOrTurnBack = async (request: Buffer, letThrough: () => void): Promise<void> => {
    const identified =
      identification instanceof Promise ? await unlessAborted(identification, cancelled.signal) : identification;
    const entrance = await enter(options, {
      ...{ policy, metadata, request, report, cancelled: cancelled.signal },
      identification: identified,
      deadlineMs: Number(call.getDeadline()),
    });
    if (entrance.kind === 'turned_back') {
      report.ended(entrance.reply, {});
      send(call, entrance.reply, report);
      return;
    }
    context = entrance.context;
    contexts.set(metadata, context);
    letThrough();
    endIfNotStarted();
  };

  return new ServerInterceptingCall(call, {
    start: (next) =>
      next({
        onReceiveMetadata: (arrived, pass) => {
          metadata = arrived;
          identification = identify(options.principal, policy.path, metadata, call);
          pass(arrived);
        },
        onReceiveMessage: (message: unknown, pass) => {
          if (message instanceof ReceivedRequest) {
            received = message;
            pass(message.message);
            return;
          }
          report.fault(
            'the service was not registered by idempotency.addService(server, definition, handlers)',
            undefined,
          );
          send(call, wireReply({ kind: 'fault' }), report);
        },
        onReceiveHalfClose: (pass) => {
          if (received === undefined) pass();
          else options.running.track(admitOrTurnBack(received.bytes, pass));
        },
        onCancel: () => {
          // Told at the end of every call.
          cancelled.abort(CALLER_GONE);
          endIfNotStarted();
        },
      }),
  });
}

/** Once a step is stored its key is not free: another attempt resumes it. */
function givenBack({ claim, request: { policy, key } }: Claimed): ServerEvent {
  const { path } = policy;
  return claim.results === undefined ? { type: 'released', path } : { type: 'lease_ended', path, requestId: key.text };
}

function send(call: ServerInterceptingCallInterface, reply: WireReply, report: CallReport): void {
  try {
    sendUnguarded(call, reply);
  } catch (error) {
    // More than a block of headers holds, or a recorded trailer that HTTP/2 will not carry; without an answer its caller
    // would wait to the deadline, and after a block too large so would every other call of its connection.
    report.fault('a reply could not be sent', error);
    call.sendStatus(wireReply({ kind: 'fault' }).status);
  }
}

function sendUnguarded(call: ServerInterceptingCallInterface, { status, response }: WireReply): void {
  if (response === undefined) {
    assertSendable(status.details ?? '', status.metadata ?? new Metadata());
    call.sendStatus(status);
    return;
  }
  call.sendMetadata(new Metadata());
  // As grpc-js says of an answer that a handler gives.
  call.sendMessage(new SerializedResponse(response), () => call.sendStatus({ ...status, details: 'OK' }));
}
