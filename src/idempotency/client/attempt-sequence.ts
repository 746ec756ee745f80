import { type InterceptorOptions, type Metadata, type NextCall, status, type StatusObject } from '@grpc/grpc-js';
import type { StopReason } from '../events';
import type { Level } from '../policy';
import { PREVIOUS_ATTEMPTS } from '../wire/metadata';
import { type Answer, Attempt, type AttemptOwner, localAnswer, type UnderlyingCall } from './attempt';
import { isOwnTimeout, neverLeft, withoutConnection } from './attempt-timeout';
import { type Deadline, deadlineIn, isParentCancelled, monotonicNow, parentThatMayCancel } from './call-deadline';
import { readExpiry } from './call-end';
import { type CallFailure, callFailure, type FailureReason } from './call-failure';
import type { CallKey } from './call-key';
import type { CallLimits } from './call-limits';
import type { ClientSettings } from './client-options';
import { mayHideSuccess } from './hidden-success';
import { keyLifetime } from './key-lifetime';
import { decideRetry, mayBeSentTwice } from './retry-decision';
import { stopStatus } from './stop-status';

/** A call as its attempts need it: what they have in common, and whom to tell. */
export interface SequencedCall {
  readonly options: InterceptorOptions;
  readonly nextCall: NextCall;
  readonly settings: ClientSettings;
  readonly limits: CallLimits;
  /** When the call with all its attempts has to be over. */
  readonly deadline: Deadline;
  /** Told the end, once; `failure` is undefined where the call succeeded. */
  finish(answer: Answer, failure: CallFailure | undefined): void;
}

/**
 * The attempts of one call: sends one, asks `decideRetry` what follows, waits, sends the next. At any time one attempt
 * is running, or the next is awaited, or the end was told.
 */
export class AttemptSequence implements AttemptOwner {
  /** Attempts that were begun. */
  sent = 0;
  private running: Attempt | undefined = undefined;
  private forgetWait: (() => void) | undefined = undefined;
  private isCancelled = false;
  /** When the first attempt was begun, by `monotonicNow`. */
  private beganAt: number | undefined = undefined;
  /** The last failure that somebody else than our own clock made. */
  private lastReal: Answer | undefined = undefined;
  /** Whether an attempt before the last one may have taken effect. */
  private maybeDoneBefore = false;
  private readonly level: Level;
  private readonly mayBeSentTwice: boolean;
  /** When the key may not be sent any more. */
  private keyLifetime: Deadline;

  /**
   * @param metadata of every attempt, and nobody else's
   * @param message likewise
   * @param key what the metadata has for a key
   */
  constructor(
    private readonly call: SequencedCall,
    private readonly metadata: Metadata,
    private readonly message: unknown,
    private readonly key: CallKey,
  ) {
    const { settings } = call;
    const policy = settings.policies.get(this.path);
    this.level = policy?.level ?? 'UNKNOWN';
    this.mayBeSentTwice = mayBeSentTwice(this.level, key.kind === 'key');
    this.keyLifetime = keyLifetime(key, policy, settings.keyLifetimeMs);
  }

  /** Sends the next attempt, unless time is up or nobody waits for it. */
  begin(): void {
    const { options, nextCall, limits, deadline } = this.call;
    if (isParentCancelled(options)) {
      return this.fail(localAnswer(status.CANCELLED, 'Cancelled by parent call'), 'cancelled', BETWEEN_ATTEMPTS);
    }
    const now = monotonicNow();
    this.beganAt ??= now;
    const remainingMs = deadline.remainingMs(now);
    if (remainingMs <= 0) return this.stop('deadline', timeIsUp(), BETWEEN_ATTEMPTS);
    const keyRemainingMs = this.keyLifetime.remainingMs(now);
    if (keyRemainingMs <= 0 && this.sent > 0) return this.stop('key_expired', timeIsUp(), BETWEEN_ATTEMPTS);
    const attemptMs = this.mayBeSentTwice
      ? // An attempt may wait for a connection: it must not leave later than its key may. A call that begins with an old
        // key asks what became of it, which is the server's to say.
        Math.min(limits.attemptTimeoutMs, remainingMs, keyRemainingMs > 0 ? keyRemainingMs : Infinity)
      : remainingMs;
    const metadata = this.metadata.clone();
    if (this.sent > 0) metadata.set(PREVIOUS_ATTEMPTS, String(this.sent));
    let underlying: UnderlyingCall;
    try {
      // Whole milliseconds: Node keeps timers of one duration together, and each that has a fraction costs a list of its own.
      underlying = nextCall({ ...options, deadline: Date.now() + Math.ceil(attemptMs) });
    } catch (error) {
      // A channel that was closed meanwhile throws, and nobody above a timer could catch it.
      const answer = localAnswer(status.INTERNAL, `The attempt could not be started: ${textOf(error)}`);
      return this.stop('channel', answer, BETWEEN_ATTEMPTS);
    }
    this.sent += 1;
    const isLast = attemptMs >= remainingMs;
    const attempt = new Attempt(underlying, isLast ? deadline : deadlineIn(attemptMs, now), isLast, this);
    this.running = attempt;
    try {
      attempt.send(metadata, this.message);
    } catch (error) {
      this.onUnsendable(error, attempt);
    }
  }

  /** An interceptor below threw. Nobody above could catch it: the first attempt is begun in a tick of its own, others by a timer. */
  private onUnsendable(error: unknown, attempt: Attempt): void {
    // It was answered all the same, and what follows is decided.
    if (this.running !== attempt) return;
    this.running = undefined;
    attempt.abandon();
    const said = `The attempt could not be sent: ${textOf(error)}`;
    const answer = localAnswer(status.INTERNAL, said);
    if (attempt.isStarted) return this.stop('channel', answer, answer.status, said);
    this.sent -= 1;
    this.stop('channel', answer, BETWEEN_ATTEMPTS, said);
  }

  /** Ends the sequence: nothing is sent any more. */
  cancel(code: status, details: string): void {
    this.isCancelled = true;
    if (this.running !== undefined) return this.running.call.cancelWithStatus(code, details);
    this.forgetWait?.();
    this.fail(localAnswer(code, details), 'cancelled', BETWEEN_ATTEMPTS);
  }

  /** Where the running attempt goes; undefined between attempts. */
  get current(): UnderlyingCall | undefined {
    return this.running?.call;
  }

  /** Part of this class's work, not of its use: told by its attempts. */
  onAnswer(answer: Answer, attempt: Attempt): void {
    this.running = undefined;
    if (answer.status.code !== status.OK) return this.onFailure(answer, attempt);
    if (this.call.settings.retryBudget.earn()) this.tellBudget();
    this.call.finish(answer, undefined);
  }

  private onFailure(answer: Answer, attempt: Attempt): void {
    const { settings, limits, deadline } = this.call;
    const { level, key } = this;
    const { retryBudget } = settings;
    if (this.isCancelled) return this.fail(answer, 'cancelled', answer.status);
    const ranOutOfTime = isOwnTimeout(answer.status, attempt.deadline);
    if (ranOutOfTime && !attempt.isLast && this.mayWaitOn() && neverLeft(answer.status)) {
      // It waited for a connection: that is not an attempt.
      this.sent -= 1;
      return this.begin();
    }
    if (!ranOutOfTime) this.lastReal = answer;
    this.learnExpiry(answer);
    // A timer that fires a little early must not leave time for an attempt that can't end.
    const remainingMs = ranOutOfTime && attempt.isLast ? 0 : deadline.remainingMs();
    const facts = {
      ...{ level, hasKey: key.kind === 'key', status: answer.status, ranOutOfTime, attempts: this.sent, remainingMs },
      keyRemainingMs: this.keyLifetime.remainingMs(),
      budgetTokens: retryBudget.tokens,
    };
    const decision = decideRetry(facts, { ...settings, maxAttempts: limits.maxAttempts });
    switch (decision.kind) {
      case 'answer':
        return this.fail(answer, 'answer', answer.status);
      case 'stop':
        return this.stop(decision.why, ranOutOfTime ? this.timedOut(answer, attempt) : answer, answer.status);
      case 'retry':
        retryBudget.spend();
        this.maybeDoneBefore ||= mayHideSuccess(answer.status);
        this.wait(decision.delayMs);
        settings.onEvent({ type: 'retry', path: this.path, reason: decision.reason, delayMs: decision.delayMs });
        this.tellBudget();
    }
  }

  /** Until it is time for the next attempt, or the call that this one serves is cancelled. */
  private wait(delayMs: number): void {
    const parent = parentThatMayCancel(this.call.options);
    const end = (): void => {
      this.forgetWait?.();
      this.begin();
    };
    const timer = setTimeout(end, delayMs);
    parent?.once('cancelled', end);
    this.forgetWait = () => {
      clearTimeout(timer);
      parent?.off('cancelled', end);
    };
  }

  /** With the cause in its text, where no attempt of the call ever left. */
  private timedOut(answer: Answer, { call }: Attempt): Answer {
    if (this.sent > 1 || !neverLeft(answer.status)) return answer;
    const waitedMs = monotonicNow() - (this.beganAt ?? monotonicNow());
    return { ...answer, status: withoutConnection(answer.status, call.getPeer(), waitedMs) };
  }

  private mayWaitOn(): boolean {
    return this.mayBeSentTwice && this.call.deadline.remainingMs() > 0 && this.keyLifetime.remainingMs() > 0;
  }

  /** A server that says until when it keeps the key knows it better than its proto. */
  private learnExpiry({ status: { metadata } }: Answer): void {
    const expiresAt = readExpiry(metadata);
    if (expiresAt === undefined) return;
    const learnedMs = expiresAt.getTime() - Date.now();
    if (learnedMs < this.keyLifetime.remainingMs()) this.keyLifetime = deadlineIn(learnedMs);
  }

  /** Gives up with the last real error, or with `answer` where there was none. */
  private stop(why: StopReason, answer: Answer, lastAttempt: StatusObject | undefined, said?: string): void {
    if (this.sent === 0) return this.fail(answer, why, lastAttempt);
    const { key, call } = this;
    const { settings } = call;
    const real = this.lastReal ?? answer;
    const failure = this.failureOf(why, lastAttempt);
    const stopped = { ...failure, path: this.path, why, said, key, requestIdName: settings.requestIdName };
    settings.onEvent({ type: 'retry_refused', path: this.path, reason: why });
    call.finish({ ...real, status: stopStatus(real.status, stopped) }, failure);
  }

  private fail(answer: Answer, why: FailureReason, lastAttempt: StatusObject | undefined): void {
    this.call.finish(answer, this.failureOf(why, lastAttempt));
  }

  private failureOf(why: FailureReason, lastAttempt: StatusObject | undefined): CallFailure {
    const { level, key, sent: attempts, maybeDoneBefore } = this;
    const requestId = key.kind === 'key' ? key.text : undefined;
    return callFailure({
      ...{ level, requestId, attempts, why, status: lastAttempt, maybeDoneBefore },
      mayBeSentTwice: this.mayBeSentTwice,
    });
  }

  private tellBudget(): void {
    const { retryBudget, onEvent } = this.call.settings;
    onEvent({ type: 'retry_budget', target: retryBudget.target, tokens: retryBudget.tokens });
  }

  private get path(): string {
    return this.call.options.method_definition.path;
  }
}

/** In place of the last attempt's status: the status that the call ends with is none of an attempt. */
const BETWEEN_ATTEMPTS = undefined;

function timeIsUp(): Answer {
  return localAnswer(status.DEADLINE_EXCEEDED, 'Deadline exceeded');
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
