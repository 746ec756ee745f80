import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { ServerEventListener } from '../events';
import type { MethodPolicy, PolicyRegistry } from '../policy';
import type { IdempotencyStore } from '../store/store';
import type { CallContext, CallContexts } from './call-context';
import { createCallReport } from './call-report';
import { enter } from './entrance';
import { type Identification, identify, type Principal } from './principal';
import { type WireReply, wireReply } from './reply';
import type { RunningCalls } from './running-calls';
import { ReceivedRequest, SerializedResponse } from './wire-messages';

/** What the interceptor works with. */
export interface InterceptorOptions<Tx> {
  readonly policies: PolicyRegistry;
  readonly store: IdempotencyStore<Tx>;
  readonly principal: Principal;
  /** Metadata name of the key. */
  readonly requestIdName: string;
  readonly contexts: CallContexts;
  readonly running: RunningCalls;
  readonly onEvent: ServerEventListener;
}

/**
 * Stands between the wire and the handlers (gRFC L112): identifies the caller, decides by the method's policy, and
 * answers itself or lets the call through. Methods that no policy knows (health, reflection) and streams pass untouched.
 */
export function createServerInterceptor<Tx>(options: InterceptorOptions<Tx>): ServerInterceptor {
  return (method, call) => {
    const policy = options.policies.get(method.path);
    const unary = !method.requestStream && !method.responseStream;
    return policy !== undefined && unary ? interceptUnary(options, policy, call) : new ServerInterceptingCall(call);
  };
}

/** Waits at half-close, when the request is complete: a handler never starts before its claim is committed (case J11). */
function interceptUnary<Tx>(
  options: InterceptorOptions<Tx>,
  policy: MethodPolicy,
  call: ServerInterceptingCallInterface,
): ServerInterceptingCall {
  const { store, requestIdName, contexts } = options;
  const report = createCallReport(policy, options.onEvent);
  let metadata = new Metadata();
  let identification: Promise<Identification>;
  let received: ReceivedRequest | undefined;
  let context: CallContext | undefined;
  let cancelled = false;

  /** Once a call is cancelled grpc-js starts no handler, so nobody else would give the claim back. */
  const releaseIfNotStarted = (): void => {
    if (!cancelled || context === undefined || context.started || context.claimed === undefined) return;
    const { claim } = context.claimed;
    context = undefined;
    const released = store.releaseIfHeld(claim).then(
      (held) => options.onEvent({ type: held ? 'released' : 'fenced', path: policy.path }),
      (error: unknown) => report.fault('a claim could not be released and waits for the end of its lease', error),
    );
    options.running.track(released);
  };

  const admitOrTurnBack = async (request: Buffer, letThrough: () => void): Promise<void> => {
    const entrance = await enter(store, requestIdName, {
      ...{ policy, metadata, request, report },
      identification: await identification,
    });
    if (entrance.kind === 'turned_back') {
      report.ended(entrance.reply, {});
      send(call, entrance.reply);
      return;
    }
    context = entrance.context;
    contexts.set(metadata, context);
    letThrough();
    releaseIfNotStarted();
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
          report.fault('the service was not registered with addService of this library', undefined);
          send(call, wireReply({ kind: 'fault' }));
        },
        onReceiveHalfClose: (pass) => {
          if (received === undefined) pass();
          else options.running.track(admitOrTurnBack(received.bytes, pass));
        },
        onCancel: () => {
          cancelled = true;
          releaseIfNotStarted();
        },
      }),
  });
}

function send(call: ServerInterceptingCallInterface, { status, response }: WireReply): void {
  if (response === undefined) {
    call.sendStatus(status);
    return;
  }
  call.sendMetadata(new Metadata());
  call.sendMessage(new SerializedResponse(response), () => call.sendStatus(status));
}
