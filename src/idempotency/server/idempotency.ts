import type { Server, ServerInterceptor, ServiceDefinition } from '@grpc/grpc-js';
import type { ServerEventListener } from '../events';
import type { PolicyRegistry } from '../policy';
import { quietListener } from '../quiet-listener';
import { assertServable } from '../policies/assert-servable';
import type { IdempotencyStore } from '../store/store';
import { REQUEST_ID } from '../wire/metadata';
import { checkServerOptions } from './check-options';
import { type Completer, createCompleter } from './completer';
import type { CompleterOptions } from './completer-options';
import { createServerInterceptor } from './interceptor';
import type { Principal } from './principal';
import type { MethodHandler } from './handler';
import { createLeaseKeeper } from './lease-keeper';
import { createRegeneratedKeys } from './regenerated-keys';
import { createRunningCalls } from './running-calls';
import { createClientVersions } from './client-version';
import { adaptService, type UnaryHandlers } from './service';
import { createUsualDurations } from './usual-duration';
import { createWaitingRoom } from './waiting-room';
import { warnOfFaults } from './warn-of-faults';

/** What a protected server needs. */
export interface IdempotencyOptions<Tx> {
  /** From `loadPolicies`. */
  readonly policies: PolicyRegistry;
  /** From `openPostgresStore`. */
  readonly store: IdempotencyStore<Tx>;
  /** Names the account of the caller. Required: there is no safe default. */
  readonly principal: Principal;
  /** Listens to what happens. Default: faults become process warnings, the rest is told to nobody. */
  readonly onEvent?: ServerEventListener;
  /** Metadata name of the key. Default `request-id`. */
  readonly requestIdName?: string;
  /** Most attempts of this process at once, those included whose callers have hung up. Default 1,000. */
  readonly mostAttempts?: number;
  /** Most calls that wait at once for another's attempt, where a policy has `max_wait`. Default 1,000. */
  readonly mostWaiting?: number;
  /**
   * Clients, as the first word of their `user-agent` (`shop/1.4.2`; with grpc-js the channel option
   * `grpc.primary_user_agent`), that mismatches are told by, at most 100: a release that encodes a request otherwise than the
   * one before shows itself so. Default: none.
   */
  readonly clientVersions?: readonly string[];
}

/** A server's protection, in two parts that belong together. */
export interface Idempotency<Tx> {
  /** For `new Server({ interceptors: [idempotency.interceptor] })`. */
  readonly interceptor: ServerInterceptor;
  /**
   * Registers a service with promise handlers: `(request, attempt) => Promise<response>`, or `{ handle, rebuild }` for a
   * method with `recording: COMPACT`.
   *
   * @throws when a method has no policy, or streams without being marked `unprotected_stream`; names every such method
   */
  addService<Definition extends ServiceDefinition>(
    server: Server,
    definition: Definition,
    handlers: UnaryHandlers<Definition, Tx>,
  ): void;
  /**
   * Makes what resumes half-finished requests of the served methods whose policy says `resume`. Off until it is started.
   *
   * @throws TypeError that names each option at fault
   */
  createCompleter(options?: CompleterOptions): Completer;
  /**
   * Resolves when no handler runs, those included whose callers have hung up. A `principal` that gives no answer is waited
   * for no longer than its caller waits, an effect that its handler did not await no longer than its claim is held. For
   * shutdown, after the last call.
   */
  idle(): Promise<void>;
  /**
   * Gives up the attempts that still run: their leases end at once, and whatever they do changes nothing any more, so that
   * a retry elsewhere need not wait. For shutdown, when the grace is over. Rejects when the store can't be reached; the
   * leases then run out by themselves.
   */
  abandon(): Promise<void>;
}

/**
 * Makes the protection of one server.
 *
 * @throws TypeError that names each option at fault and what was expected
 * @throws RangeError that names `clientVersions` where they can't be what clients say
 */
export function createIdempotency<Tx extends object>(options: IdempotencyOptions<Tx>): Idempotency<Tx> {
  checkServerOptions(options);
  const { policies, store, principal, requestIdName = REQUEST_ID, mostAttempts = 1_000, mostWaiting = 1_000 } = options;
  const onEvent = quietListener(options.onEvent ?? warnOfFaults);
  const contexts = new WeakMap();
  const running = createRunningCalls();
  const leases = createLeaseKeeper({ store, onEvent });
  const waiting = createWaitingRoom({
    ...{ store, mostWaiting },
    onError: (error) => onEvent({ type: 'fault', path: '', what: 'running attempts could not be waited for', error }),
  });
  const shared = {
    policies,
    store,
    contexts,
    running,
    leases,
    waiting,
    usual: createUsualDurations(),
    resumable: new Map(),
    onEvent,
  };
  const regenerated = createRegeneratedKeys();
  const clientVersions = createClientVersions(options.clientVersions ?? []);
  return {
    interceptor: createServerInterceptor({
      ...shared,
      principal,
      requestIdName,
      mostAttempts,
      regenerated,
      clientVersions,
    }),
    addService: (server, definition, handlers) => {
      const served = Object.entries(definition).filter(([name]) => handlers[name] !== undefined);
      assertServable(policies, [Object.fromEntries(served)]);
      const adapted = adaptService(
        shared,
        definition,
        handlers as Readonly<Record<string, MethodHandler<Tx, unknown, unknown> | undefined>>,
      );
      server.addService(adapted.definition, adapted.implementation);
    },
    createCompleter: (completerOptions) => createCompleter({ ...shared, mostAttempts }, completerOptions),
    idle: () => running.idle(),
    abandon: () => leases.endAll(),
  };
}
