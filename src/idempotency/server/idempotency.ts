import type { Server, ServerInterceptor, ServiceDefinition } from '@grpc/grpc-js';
import type { ServerEventListener } from '../events';
import type { PolicyRegistry } from '../policy';
import { quietListener } from '../quiet-listener';
import { assertServable } from '../policy-registry';
import type { IdempotencyStore } from '../store/store';
import { REQUEST_ID } from '../wire/metadata';
import { createServerInterceptor } from './interceptor';
import type { Principal } from './principal';
import type { Handler } from './run-once';
import { createRunningCalls } from './running-calls';
import { adaptService, type UnaryHandlers } from './service';

/** What a protected server needs. */
export interface IdempotencyOptions<Tx> {
  /** From `loadPolicies`. */
  readonly policies: PolicyRegistry;
  /** From `openPostgresStore`. */
  readonly store: IdempotencyStore<Tx>;
  /** Names the account of the caller. Required: there is no safe default. */
  readonly principal: Principal;
  /** Listens to what happens. Default: nobody. */
  readonly onEvent?: ServerEventListener;
  /** Metadata name of the key. Default `request-id`. */
  readonly requestIdName?: string;
}

/** A server's protection, in two parts that belong together. */
export interface Idempotency<Tx> {
  /** For `new Server({ interceptors: [idempotency.interceptor] })`. */
  readonly interceptor: ServerInterceptor;
  /**
   * Registers a service with promise handlers: `(request, attempt) => Promise<response>`.
   *
   * @throws when a method has no policy, or streams without being marked `unprotected_stream`; names every such method
   */
  addService<Definition extends ServiceDefinition>(
    server: Server,
    definition: Definition,
    handlers: UnaryHandlers<Definition, Tx>,
  ): void;
  /** Resolves when no handler runs, those included whose callers have hung up. For shutdown, after the last call. */
  idle(): Promise<void>;
}

/** Makes the protection of one server. */
export function createIdempotency<Tx extends object>(options: IdempotencyOptions<Tx>): Idempotency<Tx> {
  const { policies, store, principal, requestIdName = REQUEST_ID } = options;
  const onEvent = quietListener(options.onEvent ?? (() => undefined));
  const contexts = new WeakMap();
  const running = createRunningCalls();
  const shared = { policies, store, contexts, running, onEvent };
  return {
    interceptor: createServerInterceptor({ ...shared, principal, requestIdName }),
    addService: (server, definition, handlers) => {
      const adapted = adaptService(
        shared,
        definition,
        handlers as Readonly<Record<string, Handler<Tx, unknown, unknown> | undefined>>,
      );
      assertServable(policies, [adapted.definition]);
      server.addService(adapted.definition, adapted.implementation);
    },
    idle: () => running.idle(),
  };
}
