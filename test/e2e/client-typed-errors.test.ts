import { credentials, InterceptingCall, type Interceptor, status } from '@grpc/grpc-js';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { IdempotencyError, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient } from '../../src/payments/payments-client';
import { HANGING, REQUEST, useCountingPayments } from '../support/counting-payments';
import { failureOf } from '../support/failure-of';

const used = useCountingPayments();

describe('the time for an attempt', () => {
  test('is that of the call, where it says one', async () => {
    const requestId = newRequestId();
    const call = used.client.createPayment(HANGING, { requestId, attemptTimeoutMs: 100, timeoutMs: 900 });
    expect((await failureOf(call)).code).toBe(status.DEADLINE_EXCEEDED);
    expect(used.created.length).toBeGreaterThanOrEqual(2);
  });

  test('is not counted where the call may be sent only once', async () => {
    const startedAt = performance.now();
    await failureOf(used.client.createPayment(HANGING, { attemptTimeoutMs: 50, timeoutMs: 400 }));
    expect(performance.now() - startedAt).toBeGreaterThan(300);
    expect(used.created).toHaveLength(1);
  });

  test.each([0, -1, NaN, Infinity, 201])('of %d is refused before anything is sent', async (attemptTimeoutMs) => {
    const error = await failureOf(used.client.createPayment(REQUEST, { timeoutMs: 200, attemptTimeoutMs }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/^attemptTimeoutMs: expected more than 0 and at most timeoutMs \(200\), got/);
    expect(used.created).toHaveLength(0);
  });
});

describe('settings of one method', () => {
  const path = '/payments.v1.PaymentsService/CreatePayment';
  const insecure = { credentials: credentials.createInsecure(), initialBackoffMs: 1 };

  test('count for it alone', async () => {
    used.failures = 9;
    const own = createPaymentsClient(used.address, {
      ...insecure,
      methods: { [path]: { maxAttempts: 2, timeoutMs: 400 } },
    });
    const error = await failureOf(own.createPayment(REQUEST, { requestId: newRequestId() }));
    expect(used.created).toHaveLength(2);
    expect(error.details).toContain('gave up after 2 attempts: no attempts left');
    const tooLong = await failureOf(own.createPayment(REQUEST, { timeoutMs: 401 }));
    expect(tooLong.message).toMatch(/^timeoutMs: expected more than 0 and at most the client's 400, got 401/);
    own.close();
  });

  test('of a method that is misspelt are refused', () => {
    const methods = { [`${path}s`]: {} };
    expect(() => createPaymentsClient(used.address, { ...insecure, methods })).toThrow(
      /CreatePayments\]: expected the path/,
    );
  });
});

describe('the error', () => {
  test('says why, how often, what is unknown and with which key to ask again', async () => {
    used.failures = 9;
    const requestId = newRequestId();
    const error = await failureOf(used.client.createPayment(REQUEST, { requestId }));
    expect(error).toBeInstanceOf(IdempotencyError);
    expect(error).toMatchObject({ name: 'IdempotencyError', code: status.UNAVAILABLE, why: 'attempts', attempts: 6 });
    expect(error).toMatchObject({ requestId, outcomeUnknown: true, retriable: true });
    expect(error.message).toMatch(/^14 UNAVAILABLE: down \(gave up after 6 attempts: .* with the same request-id\)$/);
    expect(error.message).not.toContain(requestId);
  });

  test('of an answer says that it is one', async () => {
    const error = await failureOf(used.client.getPayment({ paymentId: 'none' }));
    const answer = { why: 'answer', attempts: 1, outcomeUnknown: false, requestId: undefined, retriable: false };
    expect(error).toMatchObject(answer);
  });

  test('of a call that was cancelled before it was sent says that nothing happened', async () => {
    const call = used.client.createPayment(REQUEST, { signal: AbortSignal.abort(), requestId: newRequestId() });
    expect(await failureOf(call)).toMatchObject({ why: 'cancelled', attempts: 0, outcomeUnknown: false });
  });

  test('of another interceptor is taken for unknown', async () => {
    const blunt: Interceptor = (options, nextCall) =>
      new InterceptingCall(nextCall(options), {
        start: (metadata, _, next) =>
          next(metadata, {
            onReceiveStatus: ({ code, details, metadata: trailers }, pass) =>
              pass({ code, details, metadata: trailers }),
          }),
      });
    const options = { credentials: credentials.createInsecure(), interceptors: [blunt], maxAttempts: 1 };
    const wrapped = createPaymentsClient(used.address, options);
    used.failures = 1;
    const error = await failureOf(wrapped.createPayment(REQUEST, { requestId: newRequestId() }));
    wrapped.close();
    expect(error).toMatchObject({ code: status.UNAVAILABLE, outcomeUnknown: true, retriable: false });
  });
});

test('a request is serialized once', async () => {
  const serialize = jest.spyOn(PaymentsServiceService.createPayment, 'requestSerialize');
  const own = createPaymentsClient(used.address, { credentials: credentials.createInsecure() });
  await own.createPayment(REQUEST, { requestId: newRequestId() });
  own.close();
  expect(serialize).toHaveBeenCalledTimes(1);
  serialize.mockRestore();
});
