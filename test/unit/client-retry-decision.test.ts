import { Metadata, status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { ErrorInfo, RetryInfo } from '../../src/gen/proto/google/rpc/error_details';
import { Status } from '../../src/gen/proto/google/rpc/status';
import {
  decideRetry,
  type RetryDecision,
  type RetryFacts,
  type RetrySettings,
} from '../../src/idempotency/client/retry-decision';
import type { RetryReason, StopReason } from '../../src/idempotency/events';
import type { Level } from '../../src/idempotency/policy';
import { metadataOf } from '../support/scripted-server';

const settings: RetrySettings = {
  maxAttempts: 4,
  initialBackoffMs: 100,
  backoffMultiplier: 2,
  maxBackoffMs: 300,
  random: () => 0.5,
};

/** Where the types of details are found; only the name after the last slash counts (google.protobuf.Any). */
const GOOGLE = 'type.googleapis.com/';

/** Trailers of a status that a server sent. */
const sent = { 'content-type': 'application/grpc' };

function trailers({ reason = '', domain = 'idempotency.v1', retryMs = NaN, pushback = '', types = GOOGLE }): Metadata {
  const prefix = `${types}google.rpc.`;
  const details = [];
  if (reason !== '') {
    const value = Buffer.from(ErrorInfo.encode({ reason, domain, metadata: {} }).finish());
    details.push({ typeUrl: `${prefix}ErrorInfo`, value });
  }
  if (!Number.isNaN(retryMs)) {
    const retryDelay = { seconds: 0n, nanos: retryMs * 1_000_000 };
    details.push({ typeUrl: `${prefix}RetryInfo`, value: Buffer.from(RetryInfo.encode({ retryDelay }).finish()) });
  }
  const bytes = Buffer.from(Status.encode({ code: 0, message: '', details }).finish());
  const metadata = metadataOf({ ...sent, 'grpc-status-details-bin': bytes });
  if (pushback !== '') metadata.set('grpc-retry-pushback-ms', pushback);
  return metadata;
}

/** Details that are well-formed but for the RetryInfo in them. */
function unreadableRetryInfo(): Metadata {
  const details = [{ typeUrl: 'type.googleapis.com/google.rpc.RetryInfo', value: Buffer.from([10, 200, 1]) }];
  const bytes = Status.encode({ code: status.UNAVAILABLE, message: 'down', details }).finish();
  return metadataOf({ ...sent, 'grpc-status-details-bin': Buffer.from(bytes) });
}

const down = { code: status.UNAVAILABLE, details: 'down', metadata: metadataOf(sent) };

function decide(facts: Partial<RetryFacts>): RetryDecision {
  return decideRetry(
    {
      ...{ level: 'UNKNOWN', hasKey: true, status: down, ranOutOfTime: false, attempts: 1, remainingMs: 10_000 },
      ...{ keyRemainingMs: Infinity, budgetTokens: 10 },
      ...facts,
    },
    settings,
  );
}

const retry = (reason: RetryReason, delayMs: number): RetryDecision => ({ kind: 'retry', reason, delayMs });
const answer: RetryDecision = { kind: 'answer' };
const stop = (why: StopReason): RetryDecision => ({ kind: 'stop', why });

describe('level and key', () => {
  test.each<[Level, boolean, RetryDecision]>([
    ['NO_SIDE_EFFECTS', false, retry('UNAVAILABLE', 50)],
    ['NO_SIDE_EFFECTS', true, retry('UNAVAILABLE', 50)],
    ['IDEMPOTENT', false, retry('UNAVAILABLE', 50)],
    ['IDEMPOTENT', true, retry('UNAVAILABLE', 50)],
    ['UNKNOWN', true, retry('UNAVAILABLE', 50)],
    ['UNKNOWN', false, stop('no_request_id')],
  ])('%s, key %s', (level, hasKey, expected) => {
    expect(decide({ level, hasKey })).toEqual(expected);
  });
});

describe('status and reason', () => {
  const passing = { reason: 'REQUEST_IN_PROGRESS', retryMs: 70 };
  const elsewhere = { domain: 'other.v1', retryMs: NaN };
  test.each<[string, status, string, Metadata, RetryDecision]>([
    ['UNAVAILABLE', status.UNAVAILABLE, 'down', metadataOf(sent), retry('UNAVAILABLE', 50)],
    ['in progress', status.ABORTED, '', trailers(passing), retry('REQUEST_IN_PROGRESS', 70)],
    ['claim lost', status.ABORTED, '', trailers({ reason: 'CLAIM_LOST' }), retry('CLAIM_LOST', 50)],
    ['in progress elsewhere', status.ABORTED, '', trailers({ ...passing, domain: 'other.v1' }), retry('ABORTED', 70)],
    ['that elsewhere, and it says no time', status.ABORTED, '', trailers({ ...passing, ...elsewhere }), answer],
    ['etag', status.ABORTED, '', trailers({ reason: 'ETAG_MISMATCH', domain: 'payments.v1' }), answer],
    ['another refusal', status.ABORTED, '', trailers({ reason: 'REQUEST_PARKED' }), answer],
    ['ABORTED', status.ABORTED, 'conflict', metadataOf(sent), answer],
    ['in progress, other code', status.FAILED_PRECONDITION, '', trailers(passing), answer],
    [
      'exhausted with RetryInfo',
      status.RESOURCE_EXHAUSTED,
      '',
      trailers({ retryMs: 9 }),
      retry('RESOURCE_EXHAUSTED', 9),
    ],
    ['exhausted', status.RESOURCE_EXHAUSTED, 'quota', metadataOf({ 'grpc-retry-pushback-ms': '5' }), answer],
    [
      'reset with ENHANCE_YOUR_CALM',
      status.RESOURCE_EXHAUSTED,
      'Bandwidth exhausted or memory limit exceeded',
      new Metadata(),
      retry('RESOURCE_EXHAUSTED', 50),
    ],
    ['exhausted by this side', status.RESOURCE_EXHAUSTED, 'Received message larger than max', new Metadata(), answer],
    ['reset with CANCEL', status.CANCELLED, 'Call cancelled', new Metadata(), retry('CANCELLED', 50)],
    ['reset', status.INTERNAL, 'Received RST_STREAM with code 2 (x)', new Metadata(), retry('INTERNAL', 50)],
    ['no status', status.UNKNOWN, 'Received HTTP status code 200', new Metadata(), retry('UNKNOWN', 50)],
    ['gateway', status.UNKNOWN, 'Received HTTP status code 500', metadataOf({ date: 'x' }), retry('UNKNOWN', 50)],
    ['lost headers', status.UNKNOWN, 'No status information received', new Metadata(), retry('UNKNOWN', 50)],
    ['HTTP 400', status.INTERNAL, 'Received HTTP status code 400', new Metadata(), answer],
    ['HTTP 405', status.UNKNOWN, 'Received HTTP status code 405', new Metadata(), answer],
    ['CANCELLED by the server', status.CANCELLED, 'Call cancelled', metadataOf(sent), answer],
    ['INTERNAL by the server', status.INTERNAL, 'Received RST_STREAM with code 2', metadataOf(sent), answer],
    ['INTERNAL by this side', status.INTERNAL, 'Response message parsing error: x', new Metadata(), answer],
    ['cancelled by this side', status.CANCELLED, 'Cancelled on client', new Metadata(), answer],
    ['UNKNOWN by the server', status.UNKNOWN, 'Unknown error', metadataOf(sent), answer],
    ['DEADLINE_EXCEEDED by the server', status.DEADLINE_EXCEEDED, 'slow', metadataOf(sent), answer],
    ['a code without a name', 42 as status, 'odd', metadataOf(sent), answer],
  ])('%s', (_, code, details, metadata, expected) => {
    expect(decide({ status: { code, details, metadata } })).toEqual(expected);
  });

  test.each([
    status.INVALID_ARGUMENT,
    status.NOT_FOUND,
    status.ALREADY_EXISTS,
    status.PERMISSION_DENIED,
    status.FAILED_PRECONDITION,
    status.OUT_OF_RANGE,
    status.UNIMPLEMENTED,
    status.DATA_LOSS,
    status.UNAUTHENTICATED,
  ])('code %d is an answer, also with advice to come again', (code) => {
    const metadata = trailers({ retryMs: 5, pushback: '5' });
    expect(decide({ status: { code, details: '', metadata } })).toEqual(answer);
  });

  test('an attempt whose own time was over', () => {
    const late = { code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded', metadata: new Metadata() };
    expect(decide({ status: late, ranOutOfTime: true })).toEqual(retry('DEADLINE_EXCEEDED', 50));
    expect(decide({ status: late, ranOutOfTime: true, hasKey: false })).toEqual(stop('no_request_id'));
  });
});

describe('advice of the server', () => {
  test.each<[string, Metadata, RetryDecision]>([
    ['pushback', trailers({ pushback: '20' }), retry('UNAVAILABLE', 20)],
    ['pushback of 0', trailers({ pushback: '0' }), retry('UNAVAILABLE', 0)],
    ['RetryInfo', trailers({ retryMs: 900 }), retry('UNAVAILABLE', 900)],
    ['the longer one of both', trailers({ retryMs: 30, pushback: '20' }), retry('UNAVAILABLE', 30)],
    ['negative pushback', trailers({ pushback: '-1' }), stop('pushback')],
    ['unreadable pushback', trailers({ pushback: '1s' }), stop('pushback')],
    ['negative RetryInfo', trailers({ retryMs: -1 }), stop('pushback')],
    ['pushback beyond the deadline', trailers({ pushback: '10000' }), stop('deadline')],
    ['unreadable details', metadataOf({ 'grpc-status-details-bin': Buffer.from([255]) }), stop('unreadable')],
    ['details of unreadable parts', unreadableRetryInfo(), stop('unreadable')],
  ])('%s', (_, metadata, expected) => {
    expect(decide({ status: { ...down, metadata } })).toEqual(expected);
  });

  test('two pushbacks are none that can be read', () => {
    const metadata = metadataOf(sent);
    metadata.add('grpc-retry-pushback-ms', '5');
    metadata.add('grpc-retry-pushback-ms', '7');
    expect(decide({ status: { ...down, metadata } })).toEqual(stop('pushback'));
  });
});

describe('attempts and time', () => {
  test.each<[number, number, RetryDecision]>([
    [1, 10_000, retry('UNAVAILABLE', 50)],
    [2, 10_000, retry('UNAVAILABLE', 100)],
    [3, 10_000, retry('UNAVAILABLE', 150)],
    [4, 10_000, stop('attempts')],
    [9, 10_000, stop('attempts')],
    [1, 51, retry('UNAVAILABLE', 50)],
    [1, 50, stop('deadline')],
    [1, 0, stop('deadline')],
    [1, -5, stop('deadline')],
  ])('after %d attempts with %d ms left', (attempts, remainingMs, expected) => {
    expect(decide({ attempts, remainingMs })).toEqual(expected);
  });

  test.each<[number, RetryDecision]>([
    [51, retry('UNAVAILABLE', 50)],
    [50, stop('key_expired')],
    [-1, stop('key_expired')],
  ])('with %d ms left to the key', (keyRemainingMs, expected) => {
    expect(decide({ keyRemainingMs })).toEqual(expected);
  });

  test.each<[number, RetryDecision]>([
    [1, retry('UNAVAILABLE', 50)],
    [0.9, stop('budget')],
    [0, stop('budget')],
  ])('with %d tokens in the budget', (budgetTokens, expected) => {
    expect(decide({ budgetTokens })).toEqual(expected);
  });
});

test('no settings and no failure send a keyless call of an unknown level twice', () => {
  const failures = fc.record({
    code: fc.integer({ min: 1, max: 17 }),
    details: fc.oneof(fc.string(), fc.constantFrom('Call cancelled', 'Received RST_STREAM with code 2')),
    metadata: fc.oneof(
      fc.constant(new Metadata()),
      fc
        .record({ retryMs: fc.integer({ min: -5, max: 900 }), pushback: fc.constantFrom('', '0', '5', 'x') })
        .map(trailers),
      fc.constantFrom('REQUEST_IN_PROGRESS', 'CLAIM_LOST').map((reason) => trailers({ reason })),
    ),
  });
  const anySettings = fc.record({
    maxAttempts: fc.integer({ min: 1, max: 1_000 }),
    initialBackoffMs: fc.double({ min: 0, max: 10, noNaN: true }),
    backoffMultiplier: fc.double({ min: 1, max: 5, noNaN: true }),
    maxBackoffMs: fc.double({ min: 0, max: 10, noNaN: true }),
    random: fc.constantFrom(
      () => 0,
      () => 0.9,
    ),
  });
  const property = fc.property(failures, anySettings, fc.boolean(), (failed, options, ranOutOfTime) => {
    const plenty = { attempts: 1, remainingMs: 1e9, keyRemainingMs: 1e9, budgetTokens: 1e9 };
    const rest = { status: failed, ranOutOfTime, ...plenty };
    const keyless = decideRetry({ level: 'UNKNOWN', hasKey: false, ...rest }, options);
    const keyed = decideRetry({ level: 'UNKNOWN', hasKey: true, ...rest }, options);
    expect(keyless.kind).not.toBe('retry');
    // What would be retried with a key is refused for the want of one, and nothing else is.
    expect(keyless).toEqual(keyed.kind === 'answer' ? answer : stop('no_request_id'));
  });
  fc.assert(property, { numRuns: 500 });
});

test.each([GOOGLE, 'type.example.org/', 'https://types.example.org/rpc/', '/'])(
  'details count wherever their types are found: %s',
  (types) => {
    const refused = { ...down, code: status.ABORTED, metadata: trailers({ reason: 'CLAIM_LOST', types, retryMs: 70 }) };
    expect(decide({ status: refused })).toEqual(retry('CLAIM_LOST', 70));
  },
);
