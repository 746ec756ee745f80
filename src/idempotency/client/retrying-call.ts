import { type InterceptorOptions, type Metadata, type NextCall, status } from '@grpc/grpc-js';
import { type Answer, localAnswer, type UnderlyingCall } from './attempt';
import { AttemptSequence } from './attempt-sequence';
import type { EndStatus } from './call-end';
import { callDeadline, type Deadline } from './call-deadline';
import { readCallKey } from './call-key';
import type { ClientSettings } from './client-options';
import { freezeRequest } from './freeze-request';

type Listener = NonNullable<Parameters<UnderlyingCall['start']>[1]>;
type MessageContext = Parameters<UnderlyingCall['sendMessageWithContext']>[0];

/**
 * One unary call as its caller sees it: collects the request, freezes it, has it sent as often as it takes, and passes up
 * one answer, whole and in order (gRFC L5).
 */
export class RetryingCall implements UnderlyingCall {
  private readonly deadline: Deadline;
  private listener: Listener | undefined;
  private metadata: Metadata | undefined;
  private message: unknown = null;
  private releaseMessage: () => void = () => undefined;
  private attempts: AttemptSequence | undefined;
  private end: Answer | undefined;

  constructor(
    private readonly options: InterceptorOptions,
    private readonly nextCall: NextCall,
    private readonly settings: ClientSettings,
  ) {
    this.deadline = callDeadline(options, settings.timeoutMs);
  }

  start(metadata: Metadata, listener: Listener = {}): void {
    this.metadata = metadata.clone();
    this.listener = listener;
    // An outer interceptor may have held the start back until after a cancel.
    if (this.end !== undefined) this.deliver();
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    const frozen = freezeRequest(this.options.method_definition, message);
    switch (frozen.kind) {
      case 'frozen':
        this.message = message;
        this.releaseMessage = frozen.release;
        break;
      case 'unserializable':
        this.finish(localAnswer(status.INTERNAL, `Request message serialization failure: ${String(frozen.error)}`));
        break;
    }
    context.callback?.();
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  halfClose(): void {
    // grpc-js would send a call that is cancelled in the tick that made it, and tell its caller CANCELLED.
    process.nextTick(() => this.beginAttempts());
  }

  /** Nothing to do: an attempt of a unary call reads by itself. */
  startRead(): void {}

  cancelWithStatus(code: status, details: string): void {
    if (this.end !== undefined) return;
    if (this.attempts === undefined) this.finish(localAnswer(code, details));
    else this.attempts.cancel(code, details);
  }

  getPeer(): string {
    return this.attempts?.current?.getPeer() ?? 'unknown';
  }

  getAuthContext(): ReturnType<UnderlyingCall['getAuthContext']> {
    return this.attempts?.current?.getAuthContext() ?? null;
  }

  private beginAttempts(): void {
    if (this.end !== undefined || this.metadata === undefined) return;
    const { options, nextCall, settings, metadata, message, deadline } = this;
    const policy = settings.policies.get(options.method_definition.path);
    const key = readCallKey(policy, metadata.get(settings.requestIdName));
    const request = { metadata, message };
    const level = policy?.level ?? 'UNKNOWN';
    const facts = { options, nextCall, settings, request, level, key, deadline };
    this.attempts = new AttemptSequence(facts, (answer) => this.finish(answer));
    this.attempts.begin();
  }

  private finish(answer: Answer): void {
    this.end = answer;
    this.releaseMessage();
    const { path } = this.options.method_definition;
    this.settings.onEvent({ type: 'call', path, attempts: this.attempts?.sent ?? 0, code: answer.status.code });
    // Like grpc-js: the callback never runs inside the caller's own call of cancel().
    process.nextTick(() => this.deliver());
  }

  private deliver(): void {
    const { listener, end } = this;
    if (listener === undefined || end === undefined) return;
    this.listener = undefined;
    if (end.metadata !== undefined) listener.onReceiveMetadata?.(end.metadata);
    listener.onReceiveMessage?.(end.status.code === status.OK ? end.message : null);
    const ended: EndStatus = { ...end.status, attempts: this.attempts?.sent ?? 0 };
    listener.onReceiveStatus?.(ended);
  }
}
