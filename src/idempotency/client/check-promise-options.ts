import { kindOf } from '../option-names';
import { checkCredentials } from './check-credentials';
import { CLIENT_OPTIONS } from './check-options';
import type { PromiseClientOptions, ServiceShape } from './typed-client';

/** What a promise client has beside the options of its retries. */
const OF_THE_CHANNEL = {
  credentials: true,
  channelOptions: true,
  interceptors: true,
} satisfies Partial<Record<keyof PromiseClientOptions, true>>;

/** The names of the options of a promise client. */
export const PROMISE_CLIENT_OPTIONS: ReadonlySet<string> = new Set([...Object.keys(OF_THE_CHANNEL), ...CLIENT_OPTIONS]);

/**
 * Checks that a promise client was given what it is made of, each in its place.
 *
 * @throws TypeError that names what is at fault and what was expected
 */
export function checkPlaces(service: ServiceShape, address: string, options: PromiseClientOptions): void {
  if (typeof service !== 'object' || service === null) {
    throw new TypeError(`service: expected a service definition, got ${kindOf(service)}`);
  }
  if (typeof address !== 'string') {
    throw new TypeError(`address: expected a gRPC target, such as 127.0.0.1:50051, got ${kindOf(address)}`);
  }
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`client options: expected { credentials, policies }, got ${kindOf(options)}`);
  }
}

/**
 * Checks the options of a promise client's channel.
 *
 * @throws TypeError that names what is at fault and what was expected
 */
export function checkChannel({ credentials, channelOptions, interceptors }: PromiseClientOptions): void {
  checkCredentials(credentials);
  if (channelOptions !== undefined && (typeof channelOptions !== 'object' || channelOptions === null)) {
    throw new TypeError(`channelOptions: expected an object, got ${kindOf(channelOptions)}`);
  }
  const areInterceptors = Array.isArray(interceptors) && interceptors.every((one) => typeof one === 'function');
  if (interceptors !== undefined && !areInterceptors) {
    throw new TypeError(`interceptors: expected an array of functions, got ${kindOf(interceptors)}`);
  }
}
