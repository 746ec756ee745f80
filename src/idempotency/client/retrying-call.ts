import { type InterceptorOptions, type Metadata, type NextCall, status, type StatusObject } from '@grpc/grpc-js';
import { type Answer, localAnswer, type UnderlyingCall } from './attempt';
import { AttemptSequence, type SequencedCall } from './attempt-sequence';
import type { EndStatus } from './call-end';
import { callDeadline, type Deadline } from './call-deadline';
import { type CallFailure, callFailure, type FailureReason } from './call-failure';
import { faultOfKey, readCallKey } from './call-key';
import { type CallLimits, limitsOfCall } from './call-limits';
import type { ClientSettings } from './client-options';
import { freezeRequest, type FrozenMessage } from './freeze-request';

type Listener = NonNullable<Parameters<UnderlyingCall['start']>[1]>;
type MessageContext = Parameters<UnderlyingCall['sendMessageWithContext']>[0];

/**
 * One unary call as its caller sees it: collects the request, freezes it, has it sent as often as it takes, and passes up
 * one answer, whole and in order (gRFC L5).
 */
export class RetryingCall implements UnderlyingCall, SequencedCall {
  readonly limits: CallLimits;
  readonly deadline: Deadline;
  private listener: Listener | undefined = undefined;
  private metadata: Metadata | undefined = undefined;
  private frozen: FrozenMessage | undefined = undefined;
  private attempts: AttemptSequence | undefined = undefined;
  private isCancelling = false;
  private answer: Answer | undefined = undefined;
  private failure: CallFailure | undefined = undefined;

  constructor(
    readonly options: InterceptorOptions,
    readonly nextCall: NextCall,
    readonly settings: ClientSettings,
  ) {
    this.limits = limitsOfCall(settings.limitsOf(options.method_definition.path), options);
    this.deadline = callDeadline(options, this.limits.timeoutMs);
  }

  start(metadata: Metadata, listener: Listener = {}): void {
    this.metadata = metadata.clone();
    const given = metadata.getOptions();
    if (given.waitForReady === undefined) {
      this.metadata.setOptions({ ...given, waitForReady: this.settings.waitForReady });
    }
    this.listener = listener;
    // An outer interceptor may have held the start back until after a cancel.
    if (this.answer !== undefined) this.deliver();
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    const frozen = freezeRequest(this.options.method_definition, message);
    switch (frozen.kind) {
      case 'frozen':
        this.frozen = frozen;
        break;
      case 'unserializable':
        this.failUnsent(unserializable(frozen.error), 'unserializable');
        break;
    }
    context.callback?.();
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext(NO_CONTEXT, message);
  }

  halfClose(): void {
    // grpc-js would send a call that is cancelled in the tick that made it, and tell its caller CANCELLED.
    process.nextTick(beginAttempts, this);
  }

  /** Nothing to do: an attempt of a unary call reads by itself. */
  startRead(): void {}

  cancelWithStatus(code: status, details: string): void {
    if (this.answer !== undefined) return;
    if (this.attempts === undefined) return this.failUnsent(localAnswer(code, details), 'cancelled');
    this.isCancelling = true;
    this.attempts.cancel(code, details);
    this.isCancelling = false;
  }

  getPeer(): string {
    return this.attempts?.current?.getPeer() ?? 'unknown';
  }

  getAuthContext(): ReturnType<UnderlyingCall['getAuthContext']> {
    return this.attempts?.current?.getAuthContext() ?? null;
  }

  /** Sends the first attempt, unless the call is over already. */
  begin(): void {
    if (this.answer !== undefined || this.metadata === undefined) return;
    const { policies, requestIdName } = this.settings;
    const { path } = this.options.method_definition;
    const policy = policies.get(path);
    const values = this.metadata.get(requestIdName);
    const key = readCallKey(policy, values);
    const fault = faultOfKey(policy, values, key);
    if (fault !== undefined) {
      const text = `${requestIdName} of ${path}: ${fault}; nothing was sent`;
      return this.failUnsent(localAnswer(status.INVALID_ARGUMENT, text), 'unusable_key');
    }
    this.attempts = new AttemptSequence(this, this.metadata, this.frozen?.message ?? null, key);
    this.attempts.begin();
  }

  private failUnsent(answer: Answer, why: FailureReason): void {
    const policy = this.settings.policies.get(this.options.method_definition.path);
    const key = readCallKey(policy, this.metadata?.get(this.settings.requestIdName) ?? []);
    const level = policy?.level ?? 'UNKNOWN';
    const requestId = key.kind === 'key' ? key.text : undefined;
    const nothingSent = { attempts: 0, status: undefined, maybeDoneBefore: false, mayBeSentTwice: true };
    this.finish(answer, callFailure({ ...nothingSent, level, requestId, why }));
  }

  /** Part of this class's work, not of its use: told by its attempts. */
  finish(answer: Answer, failure: CallFailure | undefined): void {
    this.answer = answer;
    this.failure = failure;
    this.frozen?.release();
    const { path } = this.options.method_definition;
    this.settings.onEvent({ type: 'call', path, attempts: this.attempts?.sent ?? 0, code: answer.status.code });
    // Like grpc-js: the callback never runs inside a call of the caller's own, such as cancel().
    if (this.attempts === undefined || this.isCancelling) process.nextTick(() => this.deliver());
    else this.deliver();
  }

  private deliver(): void {
    const { listener, answer, failure } = this;
    if (listener === undefined || answer === undefined) return;
    this.listener = undefined;
    if (answer.metadata !== undefined) listener.onReceiveMetadata?.(answer.metadata);
    listener.onReceiveMessage?.(answer.status.code === status.OK ? answer.message : null);
    listener.onReceiveStatus?.(endStatus(answer.status, failure, this.attempts?.sent ?? 0));
  }
}

const NO_CONTEXT: MessageContext = {};

function beginAttempts(call: RetryingCall): void {
  call.begin();
}

/** As grpc-js says it; its callback's error has the cause. */
function unserializable(cause: Error): Answer {
  const answer = localAnswer(status.INTERNAL, `Request message serialization failure: ${String(cause)}`);
  const caused: StatusObject & Pick<Error, 'cause'> = { ...answer.status, cause };
  return { ...answer, status: caused };
}

function endStatus(ended: StatusObject, failure: CallFailure | undefined, attempts: number): EndStatus {
  if (failure !== undefined) return { ...ended, ...failure };
  // Field by field, as a success has no others: to copy an object whole costs more than all the rest here.
  return { code: ended.code, details: ended.details, metadata: ended.metadata, attempts };
}
