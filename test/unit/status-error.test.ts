import { type Metadata, status } from '@grpc/grpc-js';
import { invalidArgument, readErrorDetails, reject, StatusError } from '../../src/idempotency/index';
import { answerOf } from '../../src/idempotency/server/answer';
import { halfFinishedError } from '../../src/idempotency/server/half-finished-error';
import { statusErrorStatus } from '../../src/idempotency/wire/error-details';
import { readTrailers } from '../../src/idempotency/wire/recorded-trailers';

const info = { reason: 'TAKEN', domain: 'shop.v1' };

function told(metadata: Metadata) {
  const { reason, retryDelayMs } = readErrorDetails(metadata);
  return { reason, retryDelayMs, pushback: metadata.get('grpc-retry-pushback-ms') };
}

describe('what a StatusError says about sending the call again', () => {
  it('is nothing where it says nothing', () => {
    const { metadata } = statusErrorStatus(new StatusError(status.ABORTED, 'no', [], info));
    expect(told(metadata)).toEqual({ reason: 'TAKEN', retryDelayMs: undefined, pushback: [] });
  });

  it('is the stop sign where it is never to be', () => {
    const { metadata } = statusErrorStatus(new StatusError(status.ABORTED, 'no', [], info, 'never'));
    expect(told(metadata)).toEqual({ reason: 'TAKEN', retryDelayMs: undefined, pushback: ['-1'] });
  });

  it('is the wait in both ways where it may be later, in whole milliseconds', () => {
    const { metadata } = statusErrorStatus(new StatusError(status.ABORTED, 'no', [], info, { afterMs: 250.1 }));
    expect(told(metadata)).toEqual({ reason: 'TAKEN', retryDelayMs: 251, pushback: ['251'] });
  });

  it.each([
    [{ afterMs: 200 }, 500, 500],
    [{ afterMs: 700 }, 500, 700],
  ])('is the longer wait where the next attempt has to wait too: %j and %d ms', (retry, pausedMs, expected) => {
    const { metadata } = statusErrorStatus(new StatusError(status.UNAVAILABLE, 'no', [], undefined, retry), pausedMs);
    expect(told(metadata)).toMatchObject({ retryDelayMs: expected, pushback: [String(expected)] });
  });

  it('stays never where the next attempt has to wait', () => {
    const { metadata } = statusErrorStatus(new StatusError(status.UNAVAILABLE, 'no', [], undefined, 'never'), 500);
    expect(told(metadata)).toMatchObject({ retryDelayMs: undefined, pushback: ['-1'] });
  });

  it.each([NaN, -1, Infinity, 2 ** 60])('is no wait of %d ms', (afterMs) => {
    const make = () => new StatusError(status.ABORTED, 'no', [], undefined, { afterMs });
    expect(make).toThrow(new TypeError('retry.afterMs: expected milliseconds, 0 or more'));
  });

  it('is recorded with a rejection that is never to be asked for again', () => {
    const answer = answerOf<never>(reject(new StatusError(status.ABORTED, 'no', [], info, 'never')), () => Buffer.of());
    const { metadata } = readTrailers(answer.trailers, answer.message);
    expect(told(metadata)).toEqual({ reason: 'TAKEN', retryDelayMs: undefined, pushback: ['-1'] });
  });

  it('is no wait for a recorded rejection: it would be told the same', () => {
    const later = new StatusError(status.ABORTED, 'no', [], info, { afterMs: 5 });
    expect(() => reject(later)).toThrow(
      new TypeError('a recorded rejection stays: retry.afterMs is for what is thrown'),
    );
  });

  it('is no stop sign once the request is half finished and goes on, and the wait stays', () => {
    const halfFinished = (retry: StatusError['retry']) =>
      halfFinishedError(new StatusError(status.ABORTED, 'no', [], info, retry));
    expect(halfFinished('never')).toMatchObject({ code: status.UNAVAILABLE, retry: undefined });
    expect(halfFinished({ afterMs: 5 })).toMatchObject({ code: status.UNAVAILABLE, retry: { afterMs: 5 } });
  });

  it('is nothing for a request at fault: no client sends that again by itself', () => {
    expect(invalidArgument([{ field: 'a', description: 'b' }]).retry).toBeUndefined();
  });
});

it.each([17, 99, -1, 1.5, NaN, '14', 'UNAVAILABLE', undefined])('%p is no code of a StatusError', (code) => {
  const make = () => new StatusError(code as status, 'no');
  expect(make).toThrow(new TypeError('code: expected one of the gRPC status codes, a number from 1 to 16'));
});
