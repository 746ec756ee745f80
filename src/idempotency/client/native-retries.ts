import type { ChannelOptions } from '@grpc/grpc-js';
import { readServiceConfig, withoutRetries } from './service-config-retries';

/** How many interceptors are looked through, at most, on the way to the channel. */
const DEEPEST = 20;

/**
 * Looks whether the channel below an attempt retries by itself, and says so for people; undefined where it does not, or
 * where it can't be seen. What DNS brings is not seen.
 *
 * An interceptor is shown no channel options, so this reads inner parts of grpc-js; where they are not as expected there
 * is no warning, and nothing else depends on them.
 */
export function findNativeRetries(call: unknown): string | undefined {
  const options = channelOptionsBelow(call);
  if (options === undefined || options['grpc.enable_retries'] === 0) return undefined;
  try {
    const { removed } = withoutRetries(readServiceConfig(options));
    if (removed.length === 0) return undefined;
    return (
      `the channel retries by itself (${removed.join(', ')} in grpc.service_config), which multiplies with the retries ` +
      'of the client: use CHANNEL_OPTIONS or safeChannelOptions for it'
    );
  } catch {
    return undefined;
  }
}

function channelOptionsBelow(call: unknown): ChannelOptions | undefined {
  let below = call;
  for (let depth = 0; depth < DEEPEST; depth += 1) {
    const next = fieldOf(below, 'nextCall') ?? fieldOf(below, 'call');
    if (next === undefined) break;
    below = next;
  }
  const options = fieldOf(fieldOf(below, 'channel'), 'options');
  return typeof options === 'object' && options !== null ? options : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}
