import { Metadata, status } from '@grpc/grpc-js';
import { callFailure, type FailedCall } from '../../src/idempotency/client/call-failure';
import { ERROR_DOMAIN, REFUSALS, type RefusalReason, StatusError } from '../../src/idempotency/errors';
import { refusalStatus, statusErrorStatus } from '../../src/idempotency/wire/error-details';
import { metadataOf } from '../support/scripted-server';

/** What a caller may conclude who asks: may I do it anew, with another key? */
type Outcome = 'known' | 'unknown';

const sent = (code: status, details = '') => ({
  ...{ code, details, metadata: metadataOf({ 'content-type': 'application/grpc' }) },
});
const madeHere = (code: status, details = '') => ({ code, details, metadata: new Metadata() });
const refused = (reason: RefusalReason) => {
  const { code, details, metadata } = refusalStatus({ reason, message: '' });
  return { code, details, metadata };
};

/** The same reason, of somebody else. */
const foreign = (code: status, reason: string) => {
  const { details, metadata } = statusErrorStatus(new StatusError(code, '', [], { reason, domain: 'other.v1' }));
  return { code, details, metadata };
};

const outcomeOf = (call: Partial<FailedCall>): Outcome => {
  const { outcomeUnknown } = callFailure({
    ...{ level: 'UNKNOWN', requestId: 'key', attempts: 1, why: 'answer', status: sent(status.INTERNAL) },
    ...{ maybeDoneBefore: false, mayBeSentTwice: true },
    ...call,
  });
  return outcomeUnknown ? 'unknown' : 'known';
};

/** A later attempt, after one that may have taken effect. */
const AFTER_ANOTHER = { maybeDoneBefore: true, attempts: 2 } as const;

describe('after a status of a server', () => {
  const CODES: Readonly<Record<Exclude<keyof typeof status, 'OK'>, Outcome>> = {
    CANCELLED: 'unknown',
    UNKNOWN: 'unknown',
    INVALID_ARGUMENT: 'known',
    DEADLINE_EXCEEDED: 'unknown',
    NOT_FOUND: 'known',
    ALREADY_EXISTS: 'known',
    PERMISSION_DENIED: 'known',
    RESOURCE_EXHAUSTED: 'known',
    FAILED_PRECONDITION: 'known',
    ABORTED: 'known',
    OUT_OF_RANGE: 'known',
    UNIMPLEMENTED: 'known',
    INTERNAL: 'unknown',
    UNAVAILABLE: 'unknown',
    DATA_LOSS: 'unknown',
    UNAUTHENTICATED: 'known',
  };

  test.each(Object.entries(CODES))('%s the outcome is %s', (name, expected) => {
    const code = status[name as keyof typeof status];
    expect(outcomeOf({ status: sent(code) })).toBe(expected);
    // A refusal of a later attempt says nothing of an earlier one that may have paid.
    expect(outcomeOf({ status: sent(code), ...AFTER_ANOTHER })).toBe('unknown');
    expect(outcomeOf({ status: sent(code), level: 'IDEMPOTENT' })).toBe(expected);
    expect(outcomeOf({ status: sent(code), level: 'NO_SIDE_EFFECTS' })).toBe('known');
    expect(outcomeOf({ status: sent(code), attempts: 0 })).toBe('known');
  });

  test.each(Object.entries(CODES))('%s with details that can not be read it is unknown', (name) => {
    const unreadable = sent(status[name as keyof typeof status]);
    unreadable.metadata.set('grpc-status-details-bin', Buffer.from([0xff]));
    expect(outcomeOf({ status: unreadable })).toBe('unknown');
  });

  test('that has no name it is unknown', () => {
    expect(outcomeOf({ status: sent(42 as status) })).toBe('unknown');
  });

  test.each([
    ['an answer too large for this side', madeHere(status.RESOURCE_EXHAUSTED)],
    ['an answer too large for the server', sent(status.RESOURCE_EXHAUSTED, 'Sent message larger than max (9 vs. 8)')],
    ['the same in Go', sent(status.RESOURCE_EXHAUSTED, 'grpc: trying to send message larger than max (9 vs. 8)')],
    ['the same in C++', sent(status.RESOURCE_EXHAUSTED, 'SERVER: Sent message larger than max (9 vs. 8)')],
  ])('%s hides what was done', (_, failed) => {
    expect(outcomeOf({ status: failed })).toBe('unknown');
  });

  test('a request too large for the server was not run', () => {
    const tooLarge = sent(status.RESOURCE_EXHAUSTED, 'Received message larger than max (9 vs. 8)');
    expect(outcomeOf({ status: tooLarge })).toBe('known');
  });
});

describe('after a refusal of ours', () => {
  const REASONS: Readonly<Record<RefusalReason, Outcome>> = {
    // Refused before anything was looked up.
    REQUEST_ID_MISSING: 'known',
    REQUEST_ID_MALFORMED: 'known',
    REQUEST_ID_FROM_FUTURE: 'known',
    PRINCIPAL_MISSING: 'known',
    // It was carried out: the answer alone is missing.
    RESPONSE_NOT_RECORDED: 'known',
    // Somebody came before, and what became of that is not told.
    REQUEST_ID_EXPIRED: 'unknown',
    REQUEST_ID_REUSED: 'unknown',
    REQUEST_IN_PROGRESS: 'unknown',
    CLAIM_LOST: 'unknown',
    REQUEST_PARKED: 'unknown',
    KEYLESS_RETRY: 'unknown',
    // Nobody could look, or a commit is not settled.
    STORE_UNAVAILABLE: 'unknown',
  };

  test.each(Object.entries(REASONS))('%s the outcome is %s', (name, expected) => {
    const failed = refused(name as RefusalReason);
    expect(outcomeOf({ status: failed })).toBe(expected);
    expect(outcomeOf({ status: failed, level: 'NO_SIDE_EFFECTS' })).toBe('known');
    const isOfTheRecord = name === 'RESPONSE_NOT_RECORDED';
    expect(outcomeOf({ status: failed, ...AFTER_ANOTHER })).toBe(isOfTheRecord ? 'known' : 'unknown');
  });

  test('whose reason is newer than this client it is unknown', () => {
    const { code, details, metadata } = statusErrorStatus(
      new StatusError(status.INVALID_ARGUMENT, '', [], { reason: 'REQUEST_ID_RETIRED', domain: ERROR_DOMAIN }),
    );
    expect(outcomeOf({ status: { code, details, metadata } })).toBe('unknown');
  });

  test.each(Object.keys(REASONS) as RefusalReason[])('%s is a reason of this domain alone', (reason) => {
    const { code } = REFUSALS[reason];
    expect(outcomeOf({ status: foreign(code, reason) })).toBe(outcomeOf({ status: sent(code) }));
  });
});

test('a refusal that was recorded tells of earlier attempts too', () => {
  const replayed = sent(status.FAILED_PRECONDITION);
  replayed.metadata.set('idempotent-replayed', 'true');
  expect(outcomeOf({ status: replayed, ...AFTER_ANOTHER })).toBe('known');
});

test('between two attempts the outcome is what those before say', () => {
  expect(outcomeOf({ status: undefined, why: 'cancelled' })).toBe('known');
  expect(outcomeOf({ status: undefined, why: 'cancelled', ...AFTER_ANOTHER })).toBe('unknown');
});
