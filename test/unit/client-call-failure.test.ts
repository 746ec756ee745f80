import { type ServiceError, status } from '@grpc/grpc-js';
import { callFailure, type FailedCall, type FailureReason } from '../../src/idempotency/client/call-failure';
import { IdempotencyError, readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { stopStatus, type StoppedCall } from '../../src/idempotency/client/stop-status';
import { STOP_REASONS } from '../../src/idempotency/events';
import { metadataOf } from '../support/scripted-server';

const sent = (code: status) => ({ code, details: '', metadata: metadataOf({ 'content-type': 'application/grpc' }) });

const failureOf = (call: Partial<FailedCall>) =>
  callFailure({
    ...{ level: 'UNKNOWN', requestId: 'key', attempts: 1, why: 'answer', status: sent(status.INTERNAL) },
    ...{ maybeDoneBefore: false, mayBeSentTwice: true },
    ...call,
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
