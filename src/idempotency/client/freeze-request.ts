import type { InterceptorOptions } from '@grpc/grpc-js';

/** A request whose bytes no longer change. */
export type FrozenRequest =
  | FrozenMessage
  /** The message does not fit its type. */
  | { readonly kind: 'unserializable'; readonly error: Error };

type MethodDefinition = InterceptorOptions['method_definition'];
type Serialize = (message: unknown) => Buffer;

/**
 * Serializes a request once and makes every attempt send those bytes, whatever its caller does to the message meanwhile.
 *
 * The channel serializes below the interceptors, by the method definition that grpc-js makes anew for each call; the only
 * place to hand it bytes is that definition. An interceptor below ours that swaps the message is obeyed.
 */
export function freezeRequest(definition: MethodDefinition, message: unknown): FrozenRequest {
  const serialize: Serialize = definition.requestSerialize;
  try {
    // A serializer may hand out a buffer that its caller goes on writing to.
    return new FrozenMessage(definition, serialize, message, Buffer.from(serialize(message)));
  } catch (error) {
    return { kind: 'unserializable', error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/** A message whose bytes the method definition of its call hands out. */
export class FrozenMessage {
  readonly kind = 'frozen';

  constructor(
    private readonly definition: MethodDefinition,
    private readonly serialize: Serialize,
    readonly message: unknown,
    bytes: Buffer,
  ) {
    definition.requestSerialize = (sent: unknown) => (sent === message ? bytes : serialize(sent));
  }

  /** Gives the definition its serializer back, in case a `callInvocationTransformer` shares one between calls. */
  release(): void {
    this.definition.requestSerialize = this.serialize;
  }
}
