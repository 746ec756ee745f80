import { status } from '@grpc/grpc-js';
import { type DestinationStream, type LevelWithSilent, type Logger, pino, stdTimeFunctions } from 'pino';
import type { PublishedFields, ServerEvent, ServerEventListener } from '../idempotency/index';
import { errorStack } from './error-stack';
import { grpcCode } from './grpc-labels';

type CallEvent = Extract<ServerEvent, { type: 'call' }>;
type ResumedEvent = Extract<ServerEvent, { type: 'resumed' }>;

/** Where log lines go, and which. */
export interface LoggerOptions {
  /** The least severe line that is written. */
  readonly level: LevelWithSilent;
  /** Default: standard output, written at once, so that a crash loses no line. */
  readonly destination?: DestinationStream;
}

/**
 * Creates the logger of a process: one JSON object a line, with the level by its name and the time in UTC. Of an error that
 * is logged, only the stacks are written, as `err`.
 */
export function createLogger({ level, destination }: LoggerOptions): Logger {
  const options = {
    level,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorStack },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/**
 * Writes one line per keyed call (design 3.5) and one per fault.
 *
 * A call's line has `requestId`, `method`, `outcome`, `recordState` (where the record of its key stands at its end, as far as
 * that is known), `attempt`, `code`, `reason` (of a refusal, of the error that the handler answered with, or of a recorded
 * rejection), `observed` (a policy that only observes let it through), `durationMs`, and what the handler published as `published.<name>`: flat, for search, and never in the way of a field of
 * ours. It is `info` for what is expected of callers that retry, `warn` for what somebody should look at, `error` where the
 * service failed. A fault's line is `error` and has the stacks of the error as `err`, as has the line of a call whose handler
 * answered that the service failed. Every line about a request has its `requestId`. No line holds a request or an answer.
 */
export function logServerEvents(logger: Logger): ServerEventListener {
  return (event) => {
    switch (event.type) {
      case 'call':
        return logger[callLevel(event)](callFields(event), 'keyed call');
      case 'fault':
        return logger.error({ ...about(event), err: event.error }, event.what);
      case 'too_large':
        return logger.warn(
          { ...about(event), responseBytes: event.responseBytes, limit: event.limit },
          'an answer was too large to be recorded; its retries are refused',
        );
      case 'execution_limit':
        return logger.warn(about(event), 'an attempt runs longer than max_execution; its lease runs out');
      case 'settled':
        return logger.warn({ ...about(event), result: event.result }, 'the outcome of a commit was settled');
      case 'lease_ended':
        return logger.warn(
          { ...about(event), pausedMs: event.pausedMs },
          'a lease was ended early; the next attempt need not wait, but for an outage',
        );
      case 'parked':
        return logger.error(about(event), 'a request was tried too often and waits for a person');
      case 'resumed':
        return logger[event.result === 'failed' ? 'warn' : 'info'](resumedFields(event), 'resumed request');
      case 'stranded':
        return logger.error({ method: event.path, records: event.records }, 'half-finished requests have no handler');
      case 'regenerated_key_suspect':
        return logger.warn(
          { method: event.path },
          'many keys came for one content within seconds: a client may make a new key per attempt',
        );
      case 'admitted':
      case 'claim':
      case 'execution':
      case 'recorded':
      case 'renewal':
      case 'takeover':
      case 'fenced':
      case 'released':
        // Numbers, for the metrics; the line of their call tells the same.
        return;
    }
  };
}

function about({ requestId, path }: { readonly requestId?: string | undefined; readonly path: string }) {
  return { requestId, method: path };
}

function callFields(event: CallEvent) {
  const { requestId, path, outcome, recordState, attempt, code, reason, observed, durationMs, published } = event;
  return {
    requestId,
    method: path,
    outcome,
    recordState,
    attempt,
    code: grpcCode(code),
    reason,
    observed,
    durationMs: toMicroseconds(durationMs),
    ...whatBroke(event),
    ...publishedFields(published),
  };
}

function resumedFields(event: ResumedEvent) {
  const { requestId, path, result, attempt, code, reason, durationMs, published } = event;
  return {
    ...{ requestId, method: path, result, attempt, code: grpcCode(code), reason },
    ...{ durationMs: toMicroseconds(durationMs), ...whatBroke(event) },
    ...publishedFields(published),
  };
}

/** Where a call was wrong, the text of its error may be about what the caller sent. */
function whatBroke({ code, error }: Pick<CallEvent, 'code' | 'error'>): { readonly err?: unknown } {
  return error !== undefined && isServerFault(code) ? { err: error } : {};
}

function publishedFields(published: PublishedFields): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(published).map(([name, value]) => [`published.${name}`, value]));
}

/** Milliseconds with no more digits than they are worth. */
function toMicroseconds(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000;
}

function callLevel({ outcome, code, reason, rejected, error }: CallEvent): 'info' | 'warn' | 'error' {
  switch (outcome) {
    case 'claimed':
      if (isServerFault(code)) return 'error';
      // A refusal after the claim: the attempt lost it. What the handler refuses is its business.
      return reason === undefined || rejected === true || error !== undefined ? 'info' : 'warn';
    case 'replayed':
    case 'in_progress':
    case 'unprotected':
      // Without a key where the policy lets it; where one is required, that is `missing_key`.
      return 'info';
    case 'mismatch':
    case 'missing_key':
    case 'malformed_key':
    case 'future_key':
    case 'expired_key':
    case 'parked':
    case 'keyless_retry':
    case 'principal_missing':
      return 'warn';
    case 'store_unavailable':
      return 'error';
  }
}

/** The codes that tell of a service that failed, not of a call that was wrong. */
function isServerFault(code: status): boolean {
  return [status.UNKNOWN, status.INTERNAL, status.UNAVAILABLE, status.DATA_LOSS].includes(code);
}
