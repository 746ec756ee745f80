import type { ChannelOptions } from '@grpc/grpc-js';
import type { ClientEventListener } from '../events';
import { readServiceConfig, withoutRetries } from './service-config-retries';

/** Whether DNS is asked for a service config. */
const NO_CONFIG_FROM_DNS = { 'grpc.service_config_disable_resolution': 1 } as const satisfies ChannelOptions;

/**
 * How soon a lost connection is made again: within 1.2 s of the server's return, jitter included. grpc-js waits up to
 * 2 min, which is longer than a call waits for it.
 */
const RECONNECT_SOON = {
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.max_reconnect_backoff_ms': 1_000,
} as const satisfies ChannelOptions;

/**
 * Channel options to use with the client interceptor, over those of your own: `{ ...own, ...CHANNEL_OPTIONS }`. To keep a
 * service config of your own, use {@link safeChannelOptions}.
 *
 * Retries of the channel itself (gRFC A6) multiply with those of the interceptor, know nothing of keys, and can't be
 * switched off per call. They come from a service config, which DNS may bring: so there is one without retry policies, and
 * DNS is not asked. `grpc.enable_retries: 0` would do it too, but would also end what is always safe, that the channel
 * resends a stream which the server provably never processed (gRFC A6, transparent retries).
 */
export const CHANNEL_OPTIONS = {
  'grpc.service_config': '{"loadBalancingConfig":[],"methodConfig":[]}',
  ...NO_CONFIG_FROM_DNS,
  ...RECONNECT_SOON,
} as const satisfies ChannelOptions;

/**
 * Makes channel options safe to use with the client interceptor: as {@link CHANNEL_OPTIONS}, but a service config keeps
 * all but its retry and hedging policies, and reconnect times that are given stay.
 *
 * @param onEvent told what was switched off, if anything was
 * @param target where the channel goes: what its scheme resolves may bring a service config that no option keeps out, as
 *   xDS does, so that retries, transparent ones too, are then off altogether
 * @throws TypeError if the service config is no JSON
 */
export function safeChannelOptions(
  own: ChannelOptions = {},
  onEvent: ClientEventListener = () => undefined,
  target = '',
): ChannelOptions {
  const { config, removed } = withoutRetries(readServiceConfig(own));
  if (removed.length > 0 && own['grpc.enable_retries'] !== 0) {
    const message = `retries of the channel are switched off, since they would multiply with those of the client: removed ${removed.join(', ')} from grpc.service_config`;
    onEvent({ type: 'native_retries', switchedOff: true, message });
  }
  return {
    ...RECONNECT_SOON,
    ...own,
    ...NO_CONFIG_FROM_DNS,
    'grpc.service_config': JSON.stringify(config),
    ...(isResolvedByGrpcJs(target) ? {} : { 'grpc.enable_retries': 0 }),
  };
}

/** Schemes whose resolvers take a service config from the channel options, or from DNS, alone. */
function isResolvedByGrpcJs(target: string): boolean {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):(?!\d+$)/i.exec(target) ?? [];
  return scheme === undefined || ['dns', 'ipv4', 'ipv6', 'unix'].includes(scheme.toLowerCase());
}
