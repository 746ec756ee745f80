import { status } from '@grpc/grpc-js';
import {
  type AbsentKey,
  hasOutlivedItsRetention,
  hasUsedUpItsAttempts,
  type RecordedStep,
  type SeenRecord,
} from '../idempotency/index';

/** One line each, whatever a scope or a resource is called; and nothing that a terminal would obey. */
export function oneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ');
}

/** `/payments.v1.PaymentsService/CreatePayment of scope shop-1` */
export function subjectOf({ path, scope }: SeenRecord): string {
  return `${path ?? 'a method that this database does not know any more'} of scope ${scope}`;
}

/** A span of time as a person reads it. */
export function spanOf(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** What is known of a record, a line each; never what was asked, given or answered. */
export function recordLines(record: SeenRecord): readonly string[] {
  const { since, ageMs, leaseLeftMs, attempt, instance, steps, completedAt, expiresAt, keptAt } = record;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['state', stateText(record)],
    ['day dropped', keptAt?.toISOString()],
    ['since', `${since.toISOString()}, ${spanOf(ageMs)} ago`],
    ['lease', record.state === 'claimed' ? leaseText(leaseLeftMs) : undefined],
    ['attempt', `${attempt}, last by ${instance}`],
    ['resource', record.resource],
    ['recovery point', recoveryPointOf(record)],
    ['steps', steps === undefined ? 'of a form that this version does not know' : steps.map(stepText).join(', ')],
    ['request kept', record.isRequestKept ? 'yes: a completer can resume it' : undefined],
    ['status', statusText(record)],
    ['answered', completedAt?.toISOString()],
    ['expires', expiresAt === undefined || keptAt !== undefined ? undefined : expiresAt.toISOString()],
    ['next', nextStep(record)],
  ];
  const shown = facts.filter(([, text]) => text !== undefined && text !== '');
  return [subjectOf(record), ...shown.map(([name, text]) => `  ${name.padEnd(14)}  ${text}`)].map(oneLine);
}

/** The same for programs. */
export function recordJson(record: SeenRecord): Readonly<Record<string, unknown>> {
  const { path, scope, requestId, state, since, ageMs, leaseLeftMs, attempt, instance, steps } = record;
  const { resource, isRequestKept, code, isAnswerKept, completedAt, expiresAt, keptAt, pausedUntil } = record;
  return {
    ...{ method: path, scope, requestId, state, since, ageMs: Math.round(ageMs), attempt, instance, resource },
    leaseLeftMs: state === 'claimed' ? Math.max(0, Math.round(leaseLeftMs)) : undefined,
    ...{
      pausedUntil,
      recoveryPoint: recoveryPointOf(record),
      steps,
      requestKept: isRequestKept,
      answerKept: code === undefined ? undefined : isAnswerKept,
    },
    ...{ status: code === undefined ? undefined : status[code], completedAt, expiresAt, dayDroppedAt: keptAt },
    next: nextStep(record),
  };
}

/** Behind which the request goes on; that of one which goes on no more is past. */
function recoveryPointOf({ state, recoveryPoint }: SeenRecord): string | undefined {
  return state === 'claimed' || state === 'parked' ? recoveryPoint : undefined;
}

function stateText(record: SeenRecord): string {
  const { state, attempt, leaseLeftMs, recoveryPoint } = record;
  switch (state) {
    case 'claimed':
      if (leaseLeftMs > 0) return `claimed: ${holderText(record)}`;
      return `claimed: ${recoveryPoint === undefined ? 'not begun' : 'half finished'}, and nobody runs it`;
    case 'parked':
      return `parked: half finished and tried ${attempt} times, it waits for a person`;
    case 'completed':
      return 'completed: it has its answer';
    case 'expired':
      return 'expired: an operator removed its answer';
  }
}

/** Who has the lease: for a while nobody, when the other side was away. */
export function holderText({ instance, pausedUntil }: SeenRecord): string {
  if (pausedUntil === undefined) return `an attempt of ${instance} runs`;
  return `paused until ${pausedUntil.toISOString()} after an outage of the other side, and nobody runs it`;
}

function leaseText(leaseLeftMs: number): string {
  return leaseLeftMs > 0 ? `${spanOf(leaseLeftMs)} left` : `over since ${spanOf(-leaseLeftMs)}`;
}

function stepText({ kind, name, isDone, derivedKey }: RecordedStep): string {
  const key = derivedKey === undefined ? '' : `, key ${derivedKey}`;
  return `${kind} ${name} (${isDone ? 'done' : 'begun'}${key})`;
}

function statusText({ code, isAnswerKept, state }: SeenRecord): string | undefined {
  if (code === undefined) return undefined;
  const kept = state === 'completed' && !isAnswerKept ? ', of which only the resource is recorded' : '';
  return `${status[code] ?? code}${kept}`;
}

/** What whoever asks does next. */
export function nextStep(record: SeenRecord): string {
  const { state, leaseLeftMs, recoveryPoint, isRequestKept, keptAt } = record;
  if (keptAt !== undefined) return KEPT;
  const isHeld = state === 'claimed' && leaseLeftMs > 0;
  if (!isHeld && (state === 'claimed' || state === 'parked') && hasOutlivedItsRetention(record)) return OUTLIVED;
  switch (state) {
    case 'claimed':
      if (isHeld) {
        const why = record.pausedUntil === undefined ? 'if it is stuck' : 'if the outage is over';
        return `wait: a retry with the same key gets its answer; ${why}: ${commandFor('release', record)} --end-lease`;
      }
      if (recoveryPoint === undefined) return 'send the request again with the same key: it runs anew';
      if (!hasUsedUpItsAttempts(record)) return resumption(isRequestKept);
      return (
        'it has used up its attempts: the next call parks it; repair what keeps it from finishing, then release it: ' +
        commandFor('release', record)
      );
    case 'parked':
      return `repair what made it fail, then ${commandFor('release', record)}`;
    case 'completed':
      return `a retry with the same key gets this answer; ${commandFor('expire', record)} removes it`;
    case 'expired':
      return expiredFate(record);
  }
}

/** How what is free goes on. */
export function resumption(isRequestKept: boolean): string {
  const retry = 'send the request again with the same key: it resumes behind its recovery point';
  return isRequestKept ? `${retry}; a completer that runs does so by itself` : retry;
}

/** What becomes of a key whose answer was removed. */
export function expiredFate({ isDated, expiresAt }: SeenRecord): string {
  if (isDated) return 'its key is refused for ever (REQUEST_ID_EXPIRED); another try needs a new key';
  const until = expiresAt === undefined ? 'while its record is kept' : `at least until ${expiresAt.toISOString()}`;
  return (
    `its key is refused (REQUEST_ID_EXPIRED) ${until}; it carries no date, so once its record is deleted it would run ` +
    'again: see that nobody sends it any more'
  );
}

/** What is done about a record that outlived its day. */
export const KEPT =
  'its day was dropped: its key is never run again, so it can be neither resumed nor released. Ask the other side, by the ' +
  'keys of its effects, what was done, and settle it there; grpc-idempotency reconcile does so for payments';

/** What is done about an undated record that was half finished for longer than its key is kept. */
export const OUTLIVED =
  'it was half finished for longer than its key is kept, so its effects may be done again: it can be neither resumed nor released. ' +
  'Ask the other side, by the keys of its effects, what was done, and settle it there; grpc-idempotency reconcile does so for payments';

/** What a key without a record means. */
export function absenceText(absent: AbsentKey): string {
  switch (absent) {
    case 'unused':
      return (
        'no attempt with it has come to this database, or each failed before its first step and gave the key back: the ' +
        'request may be sent again with the same key'
      );
    case 'too_old':
      return 'it is too old to be used first (REQUEST_ID_EXPIRED), and nothing was recorded under it; another try needs a new key';
    case 'forgotten':
      return (
        'its day is over, and what was recorded then is dropped: it is refused for ever (REQUEST_ID_EXPIRED). What it made ' +
        'still names it: payments, refunds and drafts keep request_id and scope'
      );
  }
}

function commandFor(name: 'release' | 'expire', { requestId, scope, path }: SeenRecord): string {
  const method = path === undefined ? '' : ` --method ${quoted(path)}`;
  return `npx grpc-idempotency ${name} --request-id ${quoted(requestId)} --scope ${quoted(scope)}${method}`;
}

/** As a shell reads it. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
