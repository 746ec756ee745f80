import { InterceptingCall, type Interceptor, type NextCall } from '@grpc/grpc-js';
import { type ClientOptions, type ClientSettings, clientSettings } from './client-options';
import { findNativeRetries } from './native-retries';
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
 * - All calls share one retry budget: make one interceptor per target, or give those of a target the same `retryBudget`.
 * - An error says how often it was tried, why not again, and whether the outcome is unknown: `readCallFailure` reads it.
 * - Interceptors listed before this one see one call, those listed after it see every attempt.
 * - Streaming methods pass through untouched (case J10).
 *
 * @throws TypeError that names each option at fault
 */
export function createClientInterceptor(options: ClientOptions): Interceptor {
  return interceptorOf(clientSettings(options));
}

/** Makes the interceptor of a client whose options were checked. */
export function interceptorOf(settings: ClientSettings): Interceptor {
  const { target, tokens } = settings.retryBudget;
  settings.onEvent({ type: 'retry_budget', target, tokens });
  const watched = watchForNativeRetries(settings);
  return (callOptions, nextCall) => {
    const { requestStream, responseStream } = callOptions.method_definition;
    if (requestStream || responseStream) return new InterceptingCall(nextCall(callOptions));
    // To be wrapped would cost more than it does: it needs no help with the order of things, and grpc-js asks for no class.
    return new RetryingCall(callOptions, watched(nextCall), settings) as unknown as InterceptingCall;
  };
}

/** Looks at the first call alone: an interceptor belongs to one target, and so mostly to one channel. */
function watchForNativeRetries({ onEvent }: ClientSettings): (nextCall: NextCall) => NextCall {
  let hasLooked = false;
  return (nextCall) => {
    if (hasLooked) return nextCall;
    return (options) => {
      const call = nextCall(options);
      const message = hasLooked ? undefined : findNativeRetries(call);
      hasLooked = true;
      if (message !== undefined) onEvent({ type: 'native_retries', switchedOff: false, message });
      return call;
    };
  };
}
