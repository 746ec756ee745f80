import { Metadata, type NextCall, status, type StatusObject } from '@grpc/grpc-js';
import type { Deadline } from './call-deadline';

/** The rest of the interceptor chain, down to the channel. */
export type UnderlyingCall = ReturnType<NextCall>;

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

/** Who sent an attempt. */
export interface AttemptOwner {
  /** Told once, when the status is there. */
  onAnswer(answer: Answer, attempt: Attempt): void;
}

/**
 * One attempt: sends a request and tells its owner what came back. Nothing is passed on before the status: a message whose
 * trailers never come belongs to a failed attempt.
 */
export class Attempt {
  private metadata: Metadata | undefined = undefined;
  private message: unknown = null;
  private owner: AttemptOwner | undefined;

  /**
   * @param deadline when its time is over
   * @param isLast whether its time is all that was left to the call
   */
  constructor(
    readonly call: UnderlyingCall,
    readonly deadline: Deadline,
    readonly isLast: boolean,
    owner: AttemptOwner,
  ) {
    this.owner = owner;
  }

  /** Whether it went down the chain: something of it may have left. */
  isStarted = false;

  send(metadata: Metadata, message: unknown): void {
    // grpc-js takes any object with these methods for a listener; one less is made for each call.
    this.call.start(metadata, this);
    this.isStarted = true;
    this.call.sendMessage(message);
    this.call.halfClose();
  }

  /** Ends it without a word to its owner. */
  abandon(): void {
    this.owner = undefined;
    this.call.cancelWithStatus(status.CANCELLED, 'Abandoned');
  }

  onReceiveMetadata(received: Metadata): void {
    this.metadata = received;
  }

  onReceiveMessage(received: unknown): void {
    this.message = received;
  }

  onReceiveStatus(received: StatusObject): void {
    const { owner, metadata, message } = this;
    // An asynchronous interceptor below may hand a status on twice.
    if (owner === undefined) return;
    // grpc-js and Node hold on to a call that is over for a while: they shall not hold what is its caller's.
    this.owner = undefined;
    this.message = null;
    owner.onAnswer({ metadata, message, status: message === null ? withoutMessage(received) : received }, this);
  }
}

/** A success without its message is none: grpc-js would make an error of it above, where nothing is known of the attempts. */
function withoutMessage(ended: StatusObject): StatusObject {
  return ended.code === status.OK ? { ...ended, code: status.INTERNAL, details: 'No message received' } : ended;
}
