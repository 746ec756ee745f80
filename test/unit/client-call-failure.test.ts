import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { callFailure, type FailedCall, type FailureReason } from '../../src/idempotency/client/call-failure';
import { IdempotencyError, readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { stopStatus, type StoppedCall } from '../../src/idempotency/client/stop-status';
import type { RefusalReason } from '../../src/idempotency/errors';
import { STOP_REASONS } from '../../src/idempotency/events';
import { refusalStatus } from '../../src/idempotency/wire/error-details';
import { metadataOf } from '../support/scripted-server';

const sent = (code: status) => ({ code, details: '', metadata: metadataOf({ 'content-type': 'application/grpc' }) });
const madeHere = (code: status) => ({ code, details: '', metadata: new Metadata() });
const refused = (reason: RefusalReason) => {
  const { code, details, metadata } = refusalStatus({ reason, message: '' });
  return { code, details, metadata };
};

const failureOf = (call: Partial<FailedCall>) =>
  callFailure({
    ...{ level: 'UNKNOWN', requestId: 'key', attempts: 1, why: 'answer', status: sent(status.INTERNAL) },
    ...{ maybeDoneBefore: false, mayBeSentTwice: true },
    ...call,
  });

describe('whether the outcome is unknown', () => {
  test.each<[status, boolean]>([
    [status.CANCELLED, true],
    [status.UNKNOWN, true],
    [status.DEADLINE_EXCEEDED, true],
    [status.INTERNAL, true],
    [status.UNAVAILABLE, true],
    [status.DATA_LOSS, true],
    [42 as status, true],
    [status.INVALID_ARGUMENT, false],
    [status.NOT_FOUND, false],
    [status.ALREADY_EXISTS, false],
    [status.PERMISSION_DENIED, false],
    [status.RESOURCE_EXHAUSTED, false],
    [status.FAILED_PRECONDITION, false],
    [status.ABORTED, false],
    [status.OUT_OF_RANGE, false],
    [status.UNIMPLEMENTED, false],
    [status.UNAUTHENTICATED, false],
  ])('after code %d of a server: %s', (code, expected) => {
    expect(failureOf({ status: sent(code) }).outcomeUnknown).toBe(expected);
    // After an earlier attempt that may have paid, a refusal of a later one says nothing of it.
    expect(failureOf({ status: sent(code), maybeDoneBefore: true, attempts: 2 }).outcomeUnknown).toBe(true);
    expect(failureOf({ status: sent(code), level: 'IDEMPOTENT' }).outcomeUnknown).toBe(expected);
    expect(failureOf({ status: sent(code), level: 'NO_SIDE_EFFECTS' }).outcomeUnknown).toBe(false);
    expect(failureOf({ status: sent(code), attempts: 0 }).outcomeUnknown).toBe(false);
  });

  test('an answer that is too large for this side hides what was done', () => {
    expect(failureOf({ status: madeHere(status.RESOURCE_EXHAUSTED) }).outcomeUnknown).toBe(true);
  });

  test.each<[RefusalReason, boolean]>([
    ['REQUEST_IN_PROGRESS', true],
    ['CLAIM_LOST', true],
    ['STORE_UNAVAILABLE', true],
    ['REQUEST_ID_REUSED', false],
    ['REQUEST_ID_EXPIRED', false],
    ['RESPONSE_NOT_RECORDED', false],
  ])('after %s: %s', (reason, expected) => {
    expect(failureOf({ status: refused(reason) }).outcomeUnknown).toBe(expected);
  });

  test('what is read from the record tells of earlier attempts too, and nothing else does', () => {
    const replayed = { ...sent(status.FAILED_PRECONDITION) };
    replayed.metadata.set('idempotent-replayed', 'true');
    const before = { maybeDoneBefore: true, attempts: 2 };
    expect(failureOf({ ...before, status: replayed }).outcomeUnknown).toBe(false);
    expect(failureOf({ ...before, status: refused('RESPONSE_NOT_RECORDED') }).outcomeUnknown).toBe(false);
    expect(failureOf({ ...before, status: refused('REQUEST_ID_EXPIRED') }).outcomeUnknown).toBe(true);
    expect(failureOf({ ...before, status: refused('PRINCIPAL_MISSING') }).outcomeUnknown).toBe(true);
  });
});

test.each<[FailureReason, boolean]>([
  ['attempts', true],
  ['budget', true],
  ['deadline', true],
  ['channel', true],
  ['cancelled', true],
  ['unreadable', true],
  ['answer', false],
  ['pushback', false],
  ['key_expired', false],
  ['no_request_id', false],
  ['unserializable', false],
])('a call that ended by %s may be sent again later: %s', (why, expected) => {
  expect(failureOf({ why }).retriable).toBe(expected);
  expect(failureOf({ why, mayBeSentTwice: false }).retriable).toBe(false);
});

describe('the text of a call that is not sent again', () => {
  const stopped = (call: Partial<StoppedCall>): string =>
    stopStatus(sent(status.UNAVAILABLE), {
      ...{ path: '/a.B/C', why: 'attempts', attempts: 2, outcomeUnknown: true, retriable: true },
      ...{ key: { kind: 'key', text: 'THE-KEY', atMs: undefined }, requestIdName: 'request-id' },
      ...call,
    }).details;

  test('says how often, why, what is unknown, and with what to ask again', () => {
    expect(stopped({})).toBe(
      'no text (gave up after 2 attempts: no attempts left; the outcome is unknown; ' +
        'the same call may be sent again later, with the same request-id)',
    );
    const read = { key: { kind: 'missing' }, outcomeUnknown: false, attempts: 1, why: 'budget' } as const;
    expect(stopped(read)).toBe(
      'no text (gave up after 1 attempt: the retry budget of the server is used up; the same call may be sent again later)',
    );
    expect(stopped({ why: 'key_expired', retriable: false })).toBe(
      'no text (gave up after 2 attempts: the request-id is too old to be sent again; the outcome is unknown; ' +
        'find out what became of it before it is done anew)',
    );
  });

  test.each(STOP_REASONS)('never holds the key: %s', (why) => {
    expect(stopped({ why })).not.toContain('THE-KEY');
  });
});

describe('the error', () => {
  const plain = (fields: object): ServiceError =>
    Object.assign(new Error('14 UNAVAILABLE: down'), { ...sent(status.UNAVAILABLE), details: 'down', ...fields });
  const failure = failureOf({ why: 'attempts', attempts: 3 });

  test('of a plain client has what is known as fields, if it comes from the interceptor', () => {
    expect(readCallFailure(plain(failure))).toEqual(failure);
    expect(readCallFailure(plain({}))).toBeUndefined();
    expect(readCallFailure(plain({ attempts: 3 }))).toBeUndefined();
  });

  test('of the typed client is a ServiceError with those fields, which a log and an adapter can write', () => {
    const cause = plain({});
    const error = new IdempotencyError(cause, failure);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'IdempotencyError', message: '14 UNAVAILABLE: down', details: 'down' });
    expect(error).toMatchObject({ ...failure, code: status.UNAVAILABLE, stack: cause.stack });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({
      outcomeUnknown: true,
      requestId: 'key',
      retriable: true,
    });
  });
});
