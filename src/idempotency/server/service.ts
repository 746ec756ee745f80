import {
  type handleUnaryCall,
  type MethodDefinition,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { ServerEventListener } from '../events';
import type { PolicyRegistry } from '../policy';
import type { IdempotencyStore } from '../store/store';
import type { CallContexts } from './call-context';
import { wireReply } from './reply';
import { type Handler, runOnce } from './run-once';
import type { RunningCalls } from './running-calls';
import { SerializedResponse, withWireBytes } from './wire-messages';

/** The handlers of a service's unary methods, by their name in the definition. Those left out answer UNIMPLEMENTED. */
export type UnaryHandlers<Definition, Tx> = {
  readonly [Name in keyof Definition]?: Definition[Name] extends MethodDefinition<infer Request, infer Response>
    ? Handler<Tx, Request, Response>
    : never;
};

/** What the adapter of a handler works with. */
export interface AdapterOptions<Tx> {
  readonly policies: PolicyRegistry;
  readonly store: IdempotencyStore<Tx>;
  readonly contexts: CallContexts;
  readonly running: RunningCalls;
  readonly onEvent: ServerEventListener;
}

/** Turns promise handlers into what grpc-js takes: the service with its wire bytes kept, and its implementation. */
export function adaptService<Tx extends object>(
  options: AdapterOptions<Tx>,
  definition: ServiceDefinition,
  handlers: Readonly<Record<string, Handler<Tx, unknown, unknown> | undefined>>,
): { readonly definition: ServiceDefinition; readonly implementation: UntypedServiceImplementation } {
  const adapted: Record<string, MethodDefinition<unknown, unknown>> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const [name, handler] of Object.entries(handlers)) {
    const method = definition[name];
    if (method === undefined) throw new Error(`the service has no method ${name}`);
    if (handler === undefined) continue;
    adapted[name] = withWireBytes(method);
    implementation[name] = adaptHandler(options, method, handler);
  }
  return { definition: adapted, implementation };
}

/**
 * A handler may reject, answer a caller that is gone, or forget to complete: none of it reaches grpc-js, where a
 * rejection ends the process (case J12).
 */
function adaptHandler<Tx extends object>(
  { policies, store, contexts, running, onEvent }: AdapterOptions<Tx>,
  method: MethodDefinition<unknown, unknown>,
  handler: Handler<Tx, unknown, unknown>,
): handleUnaryCall<unknown, unknown> {
  const policy = policies.get(method.path);
  if (policy === undefined) throw new Error(`no policy for ${method.path}`);

  const run = async (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>): Promise<void> => {
    const context = contexts.get(call.metadata);
    if (context === undefined) {
      onEvent({ type: 'fault', path: method.path, what: 'the server lacks the interceptor', error: undefined });
      callback(wireReply({ kind: 'fault' }).status);
      return;
    }
    context.started = true;
    const { scope, requestId, claimed, report } = context;
    const { reply, published } = await runOnce({
      ...{ policy, scope, requestId, claimed, store, handler, onEvent },
      metadata: call.metadata,
      deadline: deadlineOf(call),
      message: call.request,
      serialize: method.responseSerialize,
    });
    const sent = wireReply(reply);
    report.ended(sent, published);
    try {
      if (sent.status.code === status.OK && sent.response !== undefined) {
        callback(null, new SerializedResponse(sent.response), sent.status.metadata);
      } else callback(sent.status);
    } catch (error) {
      report.fault('a reply could not be sent', error);
      callback(wireReply({ kind: 'fault' }).status);
    }
  };

  return (call, callback) => running.track(run(call, callback));
}

function deadlineOf(call: ServerUnaryCall<unknown, unknown>): Date | undefined {
  const deadline = call.getDeadline();
  const time = new Date(deadline);
  return Number.isFinite(time.getTime()) ? time : undefined;
}
