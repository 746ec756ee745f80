import { type ClientOptions, clientSettings } from '../../src/idempotency/client/client-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';

const policies = { get: () => undefined, all: () => [] };

test('the defaults are those of the documentation', () => {
  expect(clientSettings({ policies })).toMatchObject({
    requestIdName: 'request-id',
    timeoutMs: 30_000,
    attemptTimeoutMs: 10_000,
    maxAttempts: 6,
    initialBackoffMs: 100,
    backoffMultiplier: 2,
    maxBackoffMs: 5_000,
    random: Math.random,
  });
});

test('defaults follow an option that is given', () => {
  expect(clientSettings({ policies, timeoutMs: 500 }).attemptTimeoutMs).toBe(500);
  expect(clientSettings({ policies, initialBackoffMs: 9_000 }).maxBackoffMs).toBe(9_000);
});

test.each<[Partial<ClientOptions>, string]>([
  [{ requestIdName: 'Request-Id' }, 'requestIdName: expected a lower-case metadata name without the suffix -bin'],
  [{ requestIdName: 'request-id-bin' }, 'requestIdName: expected'],
  [{ requestIdName: 'grpc-id' }, 'requestIdName: expected'],
  [{ requestIdName: '' }, 'requestIdName: expected'],
  [{ timeoutMs: 0 }, 'timeoutMs: expected milliseconds, more than 0 and at most 2147483647, got 0'],
  [{ timeoutMs: Infinity }, 'timeoutMs: expected'],
  [{ timeoutMs: 2_147_483_648 }, 'timeoutMs: expected'],
  [{ attemptTimeoutMs: -1 }, 'attemptTimeoutMs: expected'],
  [{ attemptTimeoutMs: 2_000, timeoutMs: 1_000 }, 'attemptTimeoutMs: expected at most timeoutMs (1000), got 2000'],
  [{ maxAttempts: 0 }, 'maxAttempts: expected a whole number from 1 on, got 0'],
  [{ maxAttempts: 1.5 }, 'maxAttempts: expected'],
  [{ initialBackoffMs: 0 }, 'initialBackoffMs: expected'],
  [{ backoffMultiplier: 0.5 }, 'backoffMultiplier: expected a number from 1 on, got 0.5'],
  [{ backoffMultiplier: NaN }, 'backoffMultiplier: expected'],
  [{ maxBackoffMs: NaN }, 'maxBackoffMs: expected'],
  [{ maxBackoffMs: 10, initialBackoffMs: 20 }, 'maxBackoffMs: expected at least initialBackoffMs, got 10'],
])('%j is refused at construction', (options, expected) => {
  expect(() => createClientInterceptor({ policies, ...options })).toThrow(TypeError);
  expect(() => createClientInterceptor({ policies, ...options })).toThrow(expected);
});

test.each(['policies', 'random', 'onEvent'])('%s of the wrong kind is refused', (option) => {
  expect(() => clientSettings({ policies, [option]: 'wrong' })).toThrow(`${option}: expected a`);
});

test('every fault is named at once', () => {
  const faulty = { policies, maxAttempts: 0, timeoutMs: -5, backoffMultiplier: 0 };
  expect(() => clientSettings(faulty)).toThrow(/timeoutMs: .*; .*maxAttempts: .*; .*backoffMultiplier: /);
});
