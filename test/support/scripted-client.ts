import { type ChannelOptions, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CHANNEL_OPTIONS } from '../../src/idempotency/client/channel-options';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import type { ClientEvent } from '../../src/idempotency/events';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import {
  fail,
  type RawClient,
  rawClient,
  type Reply,
  type ScriptedPlace,
  type ScriptedServer,
  startScriptedServer,
} from './scripted-server';

/** The policies of this package. */
export const policies = loadPolicies(descriptorSet);

/** A failure that may be retried. */
export const down = fail(status.UNAVAILABLE, 'down');

type BudgetEvent = Extract<ClientEvent, { readonly type: 'retry_budget' }>;

/** A client under test, and what it told. */
export interface ScriptedClient {
  readonly client: RawClient;
  /** All but those of the budget. */
  readonly events: readonly Exclude<ClientEvent, BudgetEvent>[];
  readonly budget: readonly BudgetEvent[];
}

/** Scripted servers and clients with our retries, which end with each test. */
export interface ScriptedClients {
  /** Adds steps to the end of the running test. */
  atEnd(...steps: readonly (() => void)[]): void;
  clientOf(address: string, options?: Partial<ClientOptions>, channelOptions?: ChannelOptions): ScriptedClient;
  serve(...script: readonly (Reply | ScriptedPlace)[]): Promise<ScriptedServer>;
  /** A server, and a client of it. */
  setUp(
    script: readonly Reply[],
    options?: Partial<ClientOptions>,
  ): Promise<ScriptedClient & { readonly server: ScriptedServer }>;
}

/** @param defaults options of every client beside the policies of this package and a first backoff of 1 ms */
export function useScriptedClients(defaults: Partial<ClientOptions> = {}): ScriptedClients {
  const ends: (() => void)[] = [];
  afterEach(() => ends.splice(0).forEach((end) => end()));

  const clientOf: ScriptedClients['clientOf'] = (address, options = {}, channelOptions = {}) => {
    const events: Exclude<ClientEvent, BudgetEvent>[] = [];
    const budget: BudgetEvent[] = [];
    const onEvent = (event: ClientEvent): void => {
      if (event.type === 'retry_budget') budget.push(event);
      else events.push(event);
      options.onEvent?.(event);
    };
    const interceptor = createClientInterceptor({ policies, initialBackoffMs: 1, ...defaults, ...options, onEvent });
    const client = rawClient(address, [interceptor], { ...CHANNEL_OPTIONS, ...channelOptions });
    ends.push(() => client.client.close());
    return { client, events, budget };
  };
  const serve: ScriptedClients['serve'] = async (...script) => {
    const server = await startScriptedServer(...script);
    ends.push(() => server.close());
    return server;
  };
  return {
    atEnd: (...steps) => void ends.push(...steps),
    ...{ clientOf, serve },
    setUp: async (script, options) => {
      const server = await serve(...script);
      return { server, ...clientOf(server.address, options) };
    },
  };
}
