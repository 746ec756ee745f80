import { Metadata, type NextCall, type status, type StatusObject } from '@grpc/grpc-js';

/** The rest of the interceptor chain, down to the channel. */
export type UnderlyingCall = ReturnType<NextCall>;

/** A whole unary request. */
export interface Request {
  readonly metadata: Metadata;
  readonly message: unknown;
}

/** Everything that came back for one attempt. */
export interface Answer {
  /** Initial metadata; undefined where the answer was Trailers-Only or never came. */
  readonly metadata: Metadata | undefined;
  /** The response; null where none came. It means nothing unless the status is OK. */
  readonly message: unknown;
  readonly status: StatusObject;
}

/** An answer that this side makes: no server had a word in it. */
export function localAnswer(code: status, details: string): Answer {
  return { metadata: undefined, message: null, status: { code, details, metadata: new Metadata() } };
}

/**
 * Sends a request and calls back once, when the status is there. Nothing is passed on before: a message whose trailers never
 * come belongs to a failed attempt.
 */
export function sendAttempt(call: UnderlyingCall, request: Request, onAnswer: (answer: Answer) => void): void {
  let metadata: Metadata | undefined;
  let message: unknown = null;
  let isOver = false;
  call.start(request.metadata, {
    onReceiveMetadata: (received) => {
      metadata = received;
    },
    onReceiveMessage: (received: unknown) => {
      message = received;
    },
    onReceiveStatus: (received) => {
      // An asynchronous interceptor below may hand a status on twice.
      if (isOver) return;
      isOver = true;
      onAnswer({ metadata, message, status: received });
    },
  });
  call.sendMessage(request.message);
  call.halfClose();
}
