import type { ChannelOptions } from '@grpc/grpc-js';

/**
 * Channel options to use with the client interceptor.
 *
 * Retries of the channel itself (gRFC A6, from a service config that may come by DNS) multiply with those of the
 * interceptor, know nothing of keys, and can't be switched off per call. So they are switched off for the channel. The
 * price is that a stream which the server provably never saw is not resent by the channel either; it fails UNAVAILABLE,
 * which the interceptor retries wherever the level or a key allows it.
 */
export const CHANNEL_OPTIONS = { 'grpc.enable_retries': 0 } as const satisfies ChannelOptions;
