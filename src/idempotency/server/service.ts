import {
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  type MethodDefinition,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceDefinition,
  status,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { ServerEventListener } from '../events';
import type { MethodPolicy, PolicyRegistry } from '../policy';
import { PolicyError } from '../policies/policy-error';
import type { IdempotencyStore, NotKeptOutcome } from '../store/store';
import { assertSendable } from '../wire/header-block';
import type { CallContexts } from './call-context';
import { type Reply, wireReply } from './reply';
import type { HeldByAttempt } from './running-attempt';
import type { CallContext } from './call-context';
import { handlerParts, type MethodHandler, type Rebuild } from './handler';
import type { ResumableMethod } from './completer-resume';
import type { LeaseKeeper } from './lease-keeper';
import { ofRequest } from './of-request';
import { replay } from './replay';
import { runOnce } from './run-once';
import type { RunningCalls } from './running-calls';
import type { UsualDurations } from './usual-duration';
import type { WaitingRoom } from './waiting-room';
import { SerializedResponse, withWireBytes } from './wire-messages';

const LACKS_INTERCEPTOR = 'the server lacks the interceptor: new Server({ interceptors: [idempotency.interceptor] })';

/**
 * The handlers of a service's methods, by their name in the definition: ours for unary ones, and for streams those of
 * grpc-js, which run as they are. Those left out answer UNIMPLEMENTED.
 */
export type UnaryHandlers<Definition, Tx> = {
  readonly [Name in keyof Definition]?: Definition[Name] extends MethodDefinition<infer Request, infer Response>
    ? HandlerOf<Definition[Name], Tx, Request, Response>
    : never;
};

/** A definition that doesn't say in its type whether a method streams is taken for one of unary methods. */
type HandlerOf<Method, Tx, Request, Response> = Method extends { readonly requestStream: true }
  ? Method extends { readonly responseStream: true }
    ? handleBidiStreamingCall<Request, Response>
    : handleClientStreamingCall<Request, Response>
  : Method extends { readonly responseStream: true }
    ? handleServerStreamingCall<Request, Response>
    : MethodHandler<Tx, Request, Response>;

/** What the adapter of a handler works with. */
export interface AdapterOptions<Tx> {
  readonly policies: PolicyRegistry;
  readonly store: IdempotencyStore<Tx>;
  readonly contexts: CallContexts;
  readonly running: RunningCalls;
  readonly leases: LeaseKeeper;
  readonly waiting: WaitingRoom;
  readonly usual: UsualDurations;
  /** The served methods whose policy says `resume`, by path. */
  readonly resumable: Map<string, ResumableMethod<Tx>>;
  readonly onEvent: ServerEventListener;
}

/** Turns promise handlers into what grpc-js takes: the service with its wire bytes kept, and its implementation. */
export function adaptService<Tx extends object>(
  options: AdapterOptions<Tx>,
  definition: ServiceDefinition,
  handlers: Readonly<Record<string, MethodHandler<Tx, unknown, unknown> | undefined>>,
): { readonly definition: ServiceDefinition; readonly implementation: UntypedServiceImplementation } {
  const adapted: Record<string, MethodDefinition<unknown, unknown>> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const [name, handler] of Object.entries(handlers)) {
    const method = definition[name];
    if (method === undefined)
      throw new Error(`the service has no method ${name}; its methods are ${Object.keys(definition).join(', ')}`);
    if (handler === undefined) continue;
    const streams = method.requestStream || method.responseStream;
    adapted[name] = streams ? method : withWireBytes(method);
    implementation[name] = streams ? (handler as unknown as UntypedHandleCall) : adaptHandler(options, method, handler);
  }
  return { definition: adapted, implementation };
}

/**
 * A handler may reject, answer a caller that is gone, or forget to complete: none of it reaches grpc-js, where a
 * rejection ends the process (case J12).
 */
function adaptHandler<Tx extends object>(
  options: AdapterOptions<Tx>,
  method: MethodDefinition<unknown, unknown>,
  handler: MethodHandler<Tx, unknown, unknown>,
): handleUnaryCall<unknown, unknown> {
  const { policies, contexts, running, onEvent } = options;
  const policy = policies.get(method.path);
  if (policy === undefined) throw new Error(`no policy for ${method.path}`);
  const { handle, rebuild } = handlerParts(handler);
  if (policy.recording === 'COMPACT' && rebuild === undefined) {
    throw new PolicyError('these handlers do not fit their policies:', [
      `${method.path}: expected { handle, rebuild }, since with recording COMPACT every replay is rebuilt`,
    ]);
  }

  if (policy.resume) options.resumable.set(policy.path, { policy, definition: method, handle, rebuild });

  const run = async (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>): Promise<void> => {
    const context = contexts.get(call.metadata);
    if (context === undefined) {
      onEvent({ type: 'fault', path: method.path, what: LACKS_INTERCEPTOR, error: undefined });
      callback(wireReply({ kind: 'fault' }).status);
      return;
    }
    context.started = true;
    const { scope, requestId, report } = context;
    const { reply, published } =
      context.rebuild !== undefined
        ? { reply: await rebuiltReply(context, context.rebuild, call.metadata, method, rebuild), published: {} }
        : await keepingItsLease(options, policy, context, (held) =>
            runOnce({
              ...{ policy, scope, requestId, held, rebuild, store: options.store, handler: handle },
              onEvent: ofRequest(onEvent, requestId),
              metadata: call.metadata,
              deadline: deadlineOf(call),
              message: call.request,
              serialize: method.responseSerialize,
            }),
          );
    const sent = wireReply(reply);
    report.ended(sent, published);
    try {
      if (sent.status.code === status.OK && sent.response !== undefined) {
        callback(null, new SerializedResponse(sent.response), sent.status.metadata);
      } else {
        assertSendable(sent.status.details, sent.status.metadata);
        callback(sent.status);
      }
    } catch (error) {
      report.fault('a reply could not be sent', error);
      callback(wireReply({ kind: 'fault' }).status);
    }
  };

  return (call, callback) => running.track(run(call, callback));
}

/** Keeps the lease of a claimed call while it runs, and tells those who wait for it when it has ended. */
export async function keepingItsLease<Tx extends object, Result>(
  { leases, waiting, usual }: AdapterOptions<Tx>,
  policy: MethodPolicy,
  { claimed }: Pick<CallContext, 'claimed'>,
  work: (held: HeldByAttempt | undefined) => Promise<Result>,
): Promise<Result> {
  if (claimed === undefined) return work(undefined);
  const { request, claim, askedAtMs } = claimed;
  const lease = leases.keep(claim, policy, askedAtMs, request.key.text);
  try {
    return await work({ request, lease });
  } finally {
    lease.end();
    waiting.ended(claim);
    usual.observe(policy.path, performance.now() - askedAtMs);
  }
}

/** The answer of an earlier attempt, made anew from its resource. */
async function rebuiltReply(
  { scope, report }: CallContext,
  found: NotKeptOutcome,
  metadata: Metadata,
  { responseSerialize }: MethodDefinition<unknown, unknown>,
  rebuild: Rebuild<unknown> | undefined,
): Promise<Reply> {
  const rebuilt =
    rebuild && (async (resource: string) => responseSerialize(await rebuild(resource, { scope, metadata })));
  return replay(found, rebuilt, (what, error) => report.fault(what, error));
}

function deadlineOf(call: ServerUnaryCall<unknown, unknown>): Date | undefined {
  const deadline = call.getDeadline();
  const time = new Date(deadline);
  return Number.isFinite(time.getTime()) ? time : undefined;
}
