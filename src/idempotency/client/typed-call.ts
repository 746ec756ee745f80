import {
  type CallOptions,
  type Client,
  type ClientUnaryCall,
  Metadata,
  type ServiceError,
  status,
  type StatusObject,
} from '@grpc/grpc-js';
import { quietListener } from '../quiet-listener';
import { type CallEnd, readCallEnd } from './call-end';
import type { CallFailure } from './call-failure';
import { ATTEMPT_TIMEOUT_MS, type LimitedOptions } from './call-limits';
import { checkCallSettings } from './check-call-settings';
import { checkKey } from './check-key';
import { type CallTimes, checkTimes } from './check-times';
import type { ClientSettings } from './client-options';
import { IdempotencyError, readCallFailure } from './idempotency-error';
import type { MethodShape } from './typed-client';

/** What one call is given. */
export interface CallSettings extends CallTimes {
  /** The key: made where the intent is made, kept with it, the same whenever this intent is sent. */
  readonly requestId?: string | undefined;
  /** Cancels the call: it rejects with CANCELLED and nothing more is sent. */
  readonly signal?: AbortSignal | undefined;
  /** Sent with every attempt; copied, never written to. */
  readonly metadata?: Metadata | undefined;
  /**
   * Told how the call ended, before its promise settles: whether the answer is a replay, and until when it is kept. Not
   * called where nothing could be sent. It must not throw.
   */
  readonly onEnd?: ((end: CallEnd) => void) | undefined;
}

/** A method and the name it has in TypeScript. */
interface NamedMethod extends MethodShape {
  readonly name: string;
}

/**
 * Makes one call of a promise client. The request is serialized once, by the channel's interceptor.
 *
 * @throws TypeError, as a rejection, where settings, key, times or request can't be right; nothing was sent then
 * @throws IdempotencyError, as a rejection, where the call failed
 */
export async function sendTypedCall(
  client: Client,
  settings: ClientSettings,
  method: NamedMethod,
  request: unknown,
  call: CallSettings = {},
): Promise<unknown> {
  checkCallSettings(call);
  const { requestId, signal, metadata: given, onEnd } = call;
  const { timeoutMs, attemptTimeoutMs } = checkTimes(call, settings.limitsOf(method.path));
  const metadata = given?.clone() ?? new Metadata();
  checkKey(settings, method.path, metadata, requestId);
  if (requestId !== undefined) metadata.set(settings.requestIdName, requestId);
  const sentKey = metadata.get(settings.requestIdName)[0]?.toString();
  if (signal?.aborted) throw cancelledBeforeSending(requestId);
  const serialize = method.requestSerialize as (request: unknown) => Buffer;
  const options: LimitedOptions<CallOptions> = {
    deadline: Date.now() + timeoutMs,
    ...(attemptTimeoutMs === undefined ? {} : { [ATTEMPT_TIMEOUT_MS]: attemptTimeoutMs }),
  };
  return new Promise((resolve, reject) => {
    const cancel = (): void => running?.cancel();
    let running: ClientUnaryCall | undefined = undefined;
    let isOver = false;
    let wasUnfit = false;
    const tellEnd = (ended: StatusObject): void => {
      if (onEnd !== undefined && !wasUnfit) quietListener(onEnd)(readCallEnd(ended, sentKey));
    };
    const done = (error: ServiceError | null, response?: unknown): void => {
      isOver = true;
      signal?.removeEventListener('abort', cancel);
      const failure = error === null ? undefined : (readCallFailure(error) ?? unknownFailure(requestId));
      wasUnfit = failure?.why === 'unserializable';
      // An interceptor of the caller answered while the call was made: nobody could listen for its status.
      if (running === undefined) tellEnd(error ?? okAtOnce());
      if (error === null || failure === undefined) return resolve(response);
      reject(wasUnfit ? unfitRequest(method, error) : new IdempotencyError(error, failure));
    };
    const { path, responseDeserialize } = method;
    running = client.makeUnaryRequest(path, serialize, responseDeserialize, request, metadata, options, done);
    if (isOver) return;
    if (onEnd !== undefined) running.on('status', tellEnd);
    if (signal?.aborted) running.cancel();
    else signal?.addEventListener('abort', cancel, { once: true });
  });
}

/** All that is known of a success that came while the call was made. */
function okAtOnce(): StatusObject {
  return { code: status.OK, details: '', metadata: new Metadata() };
}

/** What is known where an interceptor of the caller answered, or made the status anew: nothing. */
function unknownFailure(requestId: string | undefined): CallFailure {
  return { attempts: 0, why: 'answer', outcomeUnknown: true, requestId, retriable: false };
}

/** The same error as of a call that is aborted while it runs, so that callers look for one. */
function cancelledBeforeSending(requestId: string | undefined): IdempotencyError {
  const details = 'Cancelled before it was sent';
  const error = new Error(`${status.CANCELLED} CANCELLED: ${details}`);
  const serviceError = Object.assign(error, { code: status.CANCELLED, details, metadata: new Metadata() });
  const nothingSent = { attempts: 0, why: 'cancelled', outcomeUnknown: false, requestId, retriable: true } as const;
  return new IdempotencyError(serviceError, nothingSent);
}

/**
 * Says why a request does not fit its type, which a caller in JavaScript may not know. grpc-js would tell it as an
 * INTERNAL of the server.
 */
function unfitRequest({ name }: NamedMethod, { cause }: ServiceError): TypeError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new TypeError(
    `${name}: the request could not be serialized: ${said}; all fields are required, 64-bit numbers are bigint`,
    { cause },
  );
}
