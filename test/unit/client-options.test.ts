import { descriptorSet } from '../../src/gen/descriptor-set';
import { type ClientOptions, clientSettings } from '../../src/idempotency/client/client-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import { createRetryBudget, sharedRetryBudget } from '../../src/idempotency/client/retry-budget';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';

const policies = { get: () => undefined, all: () => [] };

test('the defaults are those of the documentation', () => {
  const settings = clientSettings({ policies });
  expect(settings).toMatchObject({
    requestIdName: 'request-id',
    initialBackoffMs: 100,
    backoffMultiplier: 2,
    maxBackoffMs: 5_000,
    random: Math.random,
    waitForReady: true,
    keyLifetimeMs: undefined,
    retryBudget: { target: 'default', tokens: 10 },
  });
  expect(settings.limitsOf('/any')).toEqual({ timeoutMs: 30_000, attemptTimeoutMs: 10_000, maxAttempts: 6 });
});

test('defaults follow an option that is given', () => {
  expect(clientSettings({ policies, timeoutMs: 500 }).limitsOf('/any').attemptTimeoutMs).toBe(500);
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
  [{ keyLifetimeMs: 0 }, 'keyLifetimeMs: expected milliseconds, more than 0, got 0'],
  [{ keyLifetimeMs: NaN }, 'keyLifetimeMs: expected'],
])('%j is refused at construction', (options, expected) => {
  expect(() => createClientInterceptor({ policies, ...options })).toThrow(TypeError);
  expect(() => createClientInterceptor({ policies, ...options })).toThrow(expected);
});

test.each([
  ['policies', 'a policy registry'],
  ['random', 'a function'],
  ['onEvent', 'a function'],
  ['waitForReady', 'true or false'],
  ['retryBudget', 'what createRetryBudget makes'],
])('%s of the wrong kind is refused', (option, expected) => {
  expect(() => clientSettings({ policies, [option]: 'wrong' })).toThrow(`${option}: expected ${expected}`);
});

test('every fault is named at once', () => {
  const faulty = { policies, maxAttempts: 0, timeoutMs: -5, backoffMultiplier: 0 };
  expect(() => clientSettings(faulty)).toThrow(/timeoutMs: .*; .*maxAttempts: .*; .*backoffMultiplier: /);
});

describe('settings of single methods', () => {
  const PAY = '/payments.v1.PaymentsService/CreatePayment';
  const known = loadPolicies(descriptorSet);
  const withMethod = (own: object, path = PAY) => clientSettings({ policies: known, methods: { [path]: own } });

  test('count for that method, and what they leave out is as for the client', () => {
    const settings = withMethod({ maxAttempts: 2, timeoutMs: 60_000 });
    expect(settings.limitsOf(PAY)).toEqual({ timeoutMs: 60_000, attemptTimeoutMs: 10_000, maxAttempts: 2 });
    expect(settings.limitsOf('/other')).toMatchObject({ timeoutMs: 30_000, maxAttempts: 6 });
  });

  test('an attempt has at most the time that the method has', () => {
    expect(withMethod({ timeoutMs: 400 }).limitsOf(PAY).attemptTimeoutMs).toBe(400);
  });

  test.each<[string, object, string]>([
    [`${PAY}s`, {}, `methods[${PAY}s]: expected the path of a method that the policies know`],
    ['CreatePayment', {}, 'methods[CreatePayment]: expected the path of a method that the policies know'],
    [PAY, { maxAttemps: 2 }, `methods[${PAY}].maxAttemps: expected one of timeoutMs, attemptTimeoutMs, maxAttempts`],
    [PAY, { maxAttempts: 0 }, `methods[${PAY}].maxAttempts: expected a whole number from 1 on, got 0`],
    [PAY, { timeoutMs: -1 }, `methods[${PAY}].timeoutMs: expected milliseconds, more than 0`],
    [PAY, { attemptTimeoutMs: 31_000 }, `methods[${PAY}].attemptTimeoutMs: expected at most timeoutMs (30000)`],
  ])('of %s, %j, are refused at construction', (path, own, expected) => {
    expect(() => withMethod(own, path)).toThrow(expected);
  });

  test('of nothing are refused', () => {
    const methods = { [PAY]: null } as unknown as ClientOptions['methods'];
    expect(() => clientSettings({ policies: known, methods })).toThrow(`methods[${PAY}]: expected an object`);
  });

  test('their faults are named with all the others', () => {
    const faulty = { policies: known, maxAttempts: 0, methods: { '/a/B': {}, [PAY]: { timeoutMs: 0 } } };
    expect(() => clientSettings(faulty)).toThrow(/maxAttempts: .*; methods\[\/a\/B\]: .*; methods\[.*\]\.timeoutMs: /);
  });
});

describe('a retry budget', () => {
  test('holds ten tokens; a retry takes one, and ten successes bring one back', () => {
    const budget = createRetryBudget();
    for (let retry = 1; retry <= 10; retry += 1) expect(budget.spend()).toBe(true);
    expect(budget.spend()).toBe(false);
    expect(budget.tokens).toBe(0);
    for (let success = 1; success <= 9; success += 1) budget.earn();
    expect([budget.tokens, budget.spend()]).toEqual([0.9, false]);
    expect([budget.earn(), budget.tokens, budget.spend(), budget.spend()]).toEqual([true, 1, true, false]);
  });

  test('is never more than full', () => {
    const budget = createRetryBudget({ maxTokens: 2, tokensPerSuccess: 1.5 });
    expect(budget.earn()).toBe(false);
    budget.spend();
    expect([budget.earn(), budget.tokens]).toEqual([true, 2]);
  });

  test.each([
    [{ maxTokens: 0.5 }, 'maxTokens: expected a number from 1 on, got 0.5'],
    [{ maxTokens: NaN, tokensPerSuccess: -1 }, /maxTokens: .*; tokensPerSuccess: expected a number from 0 on, got -1/],
    [{ target: 7 as unknown as string }, 'target: expected a text'],
  ])('of %j is refused', (options, expected) => {
    expect(() => createRetryBudget(options)).toThrow(expected);
  });

  test('is shared by the clients of one address', () => {
    expect(sharedRetryBudget('10.0.0.1:1')).toBe(sharedRetryBudget('10.0.0.1:1'));
    expect(sharedRetryBudget('10.0.0.1:1')).not.toBe(sharedRetryBudget('10.0.0.1:2'));
  });
});
