import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { type ClientOptions, clientSettings } from './client-options';
import { RetryingCall } from './retrying-call';

/**
 * Makes an interceptor that retries unary calls where a second arrival is safe: by the method's `idempotency_level`, or
 * because the call carries a key (design 5). Works with every grpc-js client (gRFC L5); use it with `CHANNEL_OPTIONS`.
 *
 * - The key is the caller's: the interceptor sends the same one on every attempt and never makes one. **A keyless call of
 *   an unknown level is sent once, whatever the error; no option changes that.** Its error then starts with
 *   `retry refused: no request-id`.
 * - Request bytes and metadata are frozen at the first attempt. Attempts after the first carry
 *   `grpc-previous-rpc-attempts` (gRFC A6).
 * - Every unary call ends: at `timeoutMs`, or its own deadline if that is sooner.
 * - Interceptors listed before this one see one call, those listed after it see every attempt.
 * - Streaming methods pass through untouched (case J10).
 *
 * @throws TypeError that names each option at fault
 */
export function createClientInterceptor(options: ClientOptions): Interceptor {
  const settings = clientSettings(options);
  return (callOptions, nextCall) => {
    const { requestStream, responseStream } = callOptions.method_definition;
    if (requestStream || responseStream) return new InterceptingCall(nextCall(callOptions));
    return new InterceptingCall(new RetryingCall(callOptions, nextCall, settings));
  };
}
