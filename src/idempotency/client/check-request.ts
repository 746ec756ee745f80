import type { MethodShape } from './typed-client';

/**
 * Checks that a request fits its type, which a caller in JavaScript may not know. Without this the channel would find it,
 * and tell it as an INTERNAL of the server.
 *
 * @param name of the method in TypeScript
 * @throws TypeError that says what the serializer said, and what it mostly means
 */
export function checkRequest(name: string, { requestSerialize }: MethodShape, request: unknown): void {
  try {
    // Its bytes are not kept: interceptors may still change the message.
    (requestSerialize as (request: unknown) => Buffer)(request);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(
      `${name}: the request could not be serialized: ${said}; all fields are required, 64-bit numbers are bigint`,
      { cause },
    );
  }
}
