import type { ChannelOptions } from '@grpc/grpc-js';

/** A gRPC service config, as far as it matters here. */
export interface ServiceConfig {
  readonly methodConfig?: readonly MethodConfig[];
  readonly [other: string]: unknown;
}

interface MethodConfig {
  readonly name?: readonly { readonly service?: string; readonly method?: string }[];
  readonly [other: string]: unknown;
}

/** A service config without retries, and what was removed from it. */
export interface WithoutRetries {
  readonly config: ServiceConfig;
  /** Such as `retryPolicy of payments.v1.PaymentsService`. */
  readonly removed: readonly string[];
}

const POLICIES = ['retryPolicy', 'hedgingPolicy'] as const;

/**
 * The service config among channel options; an empty one where there is none.
 *
 * @throws TypeError if it is no JSON
 */
export function readServiceConfig(options: ChannelOptions): ServiceConfig {
  const text = options['grpc.service_config'];
  const config: unknown = text === undefined ? {} : parse(text);
  // grpc-js needs both; a text that is no config at all is for it to refuse.
  return { loadBalancingConfig: [], methodConfig: [], ...(config as ServiceConfig) };
}

/** Takes the retry and hedging policies out of a service config and leaves the rest. */
export function withoutRetries(config: ServiceConfig): WithoutRetries {
  const removed: string[] = [];
  const methods = Array.isArray(config.methodConfig) ? config.methodConfig : [];
  const methodConfig = methods.map((method: MethodConfig) => {
    const found = POLICIES.filter((policy) => method[policy] !== undefined);
    removed.push(...found.map((policy) => `${policy} of ${namesOf(method)}`));
    return Object.fromEntries(Object.entries(method).filter(([name]) => !found.some((policy) => policy === name)));
  });
  return { config: { ...config, methodConfig }, removed };
}

function namesOf({ name }: MethodConfig): string {
  const names = (name ?? []).map(({ service = '', method = '' }) =>
    service === '' ? 'all methods' : method === '' ? service : `${service}/${method}`,
  );
  return names.join(' and ');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(`channelOptions: grpc.service_config: expected JSON: ${said}`, { cause });
  }
}
