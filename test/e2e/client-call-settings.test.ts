import { Metadata } from '@grpc/grpc-js';
import { newRequestId, withTrailers } from '../../src/idempotency/index';
import { REQUEST, useCountingPayments } from '../support/counting-payments';
import { failureOf } from '../support/failure-of';

const used = useCountingPayments();

const KEY = newRequestId();
const withKey = new Metadata();
withKey.set('request-id', KEY);

/** What a program in JavaScript may give as the settings of a call. */
const careless: readonly [string, unknown, RegExp][] = [
  ['requestid', { requestid: KEY }, /^settings of a call: requestid: no such name; was requestId meant\?$/],
  ['requestID', { requestID: KEY }, /^settings of a call: requestID: no such name; was requestId meant\?$/],
  ['timeoutMS', { requestId: KEY, timeoutMS: 5 }, /timeoutMS: no such name; was timeoutMs meant\?$/],
  ['idempotencyKey', { idempotencyKey: KEY }, /expected one of requestId, timeoutMs, attemptTimeoutMs, signal/],
  ['a number as key', { requestId: 7 }, /^requestId: expected a text, got a number$/],
  [
    'a controller as signal',
    { signal: new AbortController() },
    /^signal: expected an AbortSignal, got an object \(Abort/,
  ],
  [
    'an object as metadata',
    { metadata: { 'request-id': KEY } },
    /^metadata: expected Metadata of grpc-js, got an object/,
  ],
  ['a text as onEnd', { requestId: KEY, onEnd: 'log' }, /^onEnd: expected a function, got a string$/],
];

/** What a program in JavaScript may give in their place. */
const instead: readonly [string, unknown, RegExp][] = [
  ['the bare key', KEY, /^settings of a call: expected an object such as { requestId }, got a string$/],
  ['metadata', withKey, /^settings of a call: expected an object such as { requestId }, got an object \(Metadata\)$/],
  ['a callback', () => undefined, /^settings of a call: expected an object .* got a function$/],
  ['a map', new Map([['requestId', KEY]]), /^settings of a call: expected an object .* got an object \(Map\)$/],
  ['null', null, /^settings of a call: expected an object .* got null$/],
];

describe.each([
  ['a method', () => used.client.createPayment],
  ['a method with its trailers', () => withTrailers(used.client.createPayment)],
])('%s', (_, methodOf) => {
  test.each([...careless, ...instead])('with %s sends nothing and says so', async (__, settings, expected) => {
    const error = await failureOf(methodOf()(REQUEST, settings as never));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(expected);
    expect(error.message).not.toContain(KEY);
    expect(used.created).toHaveLength(0);
  });
});

test('the method of an update says so too', async () => {
  const update = { paymentId: 'p', etag: 'e', metadata: {} };
  for (const [, settings] of careless.slice(0, 4)) {
    expect(await failureOf(used.client.updatePayment(update, settings as never))).toBeInstanceOf(TypeError);
  }
  for (const [, settings, expected] of instead.filter(([what]) => what !== 'metadata')) {
    expect((await failureOf(used.client.updatePayment(update, settings as never))).message).toMatch(expected);
  }
  expect(await failureOf(used.client.updatePayment(update, withKey as never))).toBeInstanceOf(TypeError);
});
