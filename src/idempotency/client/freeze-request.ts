import type { InterceptorOptions } from '@grpc/grpc-js';

/** A request whose bytes no longer change. */
export type FrozenRequest =
  | { readonly kind: 'frozen'; readonly release: () => void }
  /** The message does not fit its type. */
  | { readonly kind: 'unserializable'; readonly error: Error };

/**
 * Serializes a request once and makes every attempt send those bytes, whatever its caller does to the message meanwhile.
 *
 * The channel serializes below the interceptors, by the method definition that grpc-js makes anew for each call; the only
 * place to hand it bytes is that definition. `release` gives the definition its serializer back, in case a
 * `callInvocationTransformer` shares one between calls. An interceptor below ours that swaps the message is obeyed.
 */
export function freezeRequest(definition: InterceptorOptions['method_definition'], message: unknown): FrozenRequest {
  const serialize: (message: unknown) => Buffer = definition.requestSerialize;
  let bytes: Buffer;
  try {
    // A serializer may hand out a buffer that its caller goes on writing to.
    bytes = Buffer.from(serialize(message));
  } catch (error) {
    return { kind: 'unserializable', error: error instanceof Error ? error : new Error(String(error)) };
  }
  definition.requestSerialize = (sent: unknown) => (sent === message ? bytes : serialize(sent));
  return {
    kind: 'frozen',
    release: () => {
      definition.requestSerialize = serialize;
    },
  };
}
