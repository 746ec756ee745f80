import type { MethodDefinition } from '@grpc/grpc-js';

/** A request message together with the bytes it came as, which the fingerprint is made of. */
export class ReceivedRequest {
  constructor(
    readonly message: unknown,
    readonly bytes: Buffer,
  ) {}
}

/** A response that is bytes already: the recorded ones, sent as they are. */
export class SerializedResponse {
  constructor(readonly bytes: Buffer) {}
}

/** The same method, whose requests arrive as {@link ReceivedRequest} and whose responses may be bytes. */
export function withWireBytes(definition: MethodDefinition<unknown, unknown>): MethodDefinition<unknown, unknown> {
  const { requestDeserialize, responseSerialize } = definition;
  return {
    ...definition,
    requestDeserialize: (bytes) => new ReceivedRequest(requestDeserialize(bytes), bytes),
    responseSerialize: (response) =>
      response instanceof SerializedResponse ? response.bytes : responseSerialize(response),
  };
}
