import { type InterceptorOptions, type NextCall, status, type StatusObject } from '@grpc/grpc-js';
import type { Level } from '../policy';
import { PREVIOUS_ATTEMPTS } from '../wire/metadata';
import { type Answer, localAnswer, type Request, sendAttempt, type UnderlyingCall } from './attempt';
import { type Deadline, deadlineIn, isParentCancelled } from './call-deadline';
import type { CallKey } from './call-key';
import type { ClientSettings } from './client-options';
import { hasNoHeaders } from './failure';
import { decideRetry, mayBeSentTwice, type StopReason } from './retry-decision';
import { stopStatus } from './stop-status';

/** What the attempts of one call have in common. */
export interface SequenceFacts {
  readonly options: InterceptorOptions;
  readonly nextCall: NextCall;
  readonly settings: ClientSettings;
  readonly request: Request;
  readonly level: Level;
  readonly key: CallKey;
  /** When the call with all its attempts has to be over. */
  readonly deadline: Deadline;
}

/**
 * The attempts of one call: sends one, asks `decideRetry` what follows, waits, sends the next. At any time one attempt
 * is running, or the next is awaited, or the end was told.
 */
export class AttemptSequence {
  /** Attempts that were sent. */
  sent = 0;
  private running: UnderlyingCall | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isCancelled = false;
  /** The last failure that somebody else than our own clock made. */
  private lastReal: Answer | undefined;

  /** @param onEnd called once, with what the caller gets */
  constructor(
    private readonly facts: SequenceFacts,
    private readonly onEnd: (answer: Answer) => void,
  ) {}

  /** Sends the next attempt, unless time is up or nobody waits for it. */
  begin(): void {
    const { options, nextCall, settings, request, deadline } = this.facts;
    if (isParentCancelled(options)) return this.onEnd(localAnswer(status.CANCELLED, 'Cancelled by parent call'));
    const remainingMs = deadline.remainingMs();
    if (remainingMs <= 0) {
      return this.stop('deadline', localAnswer(status.DEADLINE_EXCEEDED, 'Deadline exceeded'));
    }
    const attemptMs = this.mayBeSentTwice() ? Math.min(settings.attemptTimeoutMs, remainingMs) : remainingMs;
    const metadata = request.metadata.clone();
    if (this.sent > 0) metadata.set(PREVIOUS_ATTEMPTS, String(this.sent));
    try {
      this.running = nextCall({ ...options, deadline: Date.now() + attemptMs });
    } catch (error) {
      // A channel that was closed meanwhile throws, and nobody above a timer could catch it.
      const text = error instanceof Error ? error.message : String(error);
      return this.stop('channel', localAnswer(status.INTERNAL, `The attempt could not be started: ${text}`));
    }
    this.sent += 1;
    const attempt = { deadline: deadlineIn(attemptMs), isLast: attemptMs >= remainingMs };
    sendAttempt(this.running, { ...request, metadata }, (answer) => this.onAnswer(answer, attempt));
  }

  /** Ends the sequence: nothing is sent any more. */
  cancel(code: status, details: string): void {
    this.isCancelled = true;
    if (this.running !== undefined) return this.running.cancelWithStatus(code, details);
    clearTimeout(this.timer);
    this.onEnd(localAnswer(code, details));
  }

  /** Where the running attempt goes; undefined between attempts. */
  get current(): UnderlyingCall | undefined {
    return this.running;
  }

  private onAnswer(answer: Answer, attempt: { readonly deadline: Deadline; readonly isLast: boolean }): void {
    this.running = undefined;
    if (answer.status.code === status.OK || this.isCancelled) return this.onEnd(answer);
    const ranOutOfTime = isOwnTimeout(answer.status, attempt.deadline);
    if (!ranOutOfTime) this.lastReal = answer;
    const { level, key, settings, deadline } = this.facts;
    // A timer that fires a little early must not leave time for an attempt that can't end.
    const remainingMs = ranOutOfTime && attempt.isLast ? 0 : deadline.remainingMs();
    const decision = decideRetry(
      { level, hasKey: key.kind === 'key', status: answer.status, ranOutOfTime, attempts: this.sent, remainingMs },
      settings,
    );
    switch (decision.kind) {
      case 'answer':
        return this.onEnd(answer);
      case 'stop':
        return this.stop(decision.why, answer);
      case 'retry':
        this.timer = setTimeout(() => this.begin(), decision.delayMs);
        settings.onEvent({ type: 'retry', path: this.path, reason: decision.reason, delayMs: decision.delayMs });
    }
  }

  /** Gives up with the last real error, or with `answer` where there was none. */
  private stop(why: StopReason, answer: Answer): void {
    const { key, settings } = this.facts;
    const { path, sent: attempts } = this;
    if (attempts === 0) return this.onEnd(answer);
    const real = this.lastReal ?? answer;
    const stopped = stopStatus(real.status, { path, why, attempts, key, requestIdName: settings.requestIdName });
    settings.onEvent({ type: 'retry_refused', path, reason: why });
    this.onEnd({ ...real, status: stopped });
  }

  private mayBeSentTwice(): boolean {
    return mayBeSentTwice({ level: this.facts.level, hasKey: this.facts.key.kind === 'key' });
  }

  private get path(): string {
    return this.facts.options.method_definition.path;
  }
}

/** The server counts the same deadline and may be the one who says so. */
function isOwnTimeout(failed: StatusObject, deadline: Deadline): boolean {
  if (failed.code !== status.DEADLINE_EXCEEDED) return false;
  const isMadeHere = hasNoHeaders(failed) && failed.details.startsWith('Deadline exceeded');
  return isMadeHere || deadline.remainingMs() <= 0;
}
