import { status } from '@grpc/grpc-js';
import { type AttemptService, payAndComplete, startAttemptService, toldText } from '../support/attempt-service';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { changedDescriptorSet } from '../support/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer } from '../support/stock-client';

const CREATE = { method: 'CreatePayment', request: paymentRequest() };

describe('a call without a key of an idempotent method', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({
      descriptorSet: changedDescriptorSet({ CreatePayment: { level: 'IDEMPOTENT' } }),
    });
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(() => service.stop());

  it('runs each time, without a record', async () => {
    service.handle({ createPayment: payAndComplete });

    expect(await service.client.call(CREATE)).toMatchObject({ code: status.OK, response: { payment: {} } });
    expect(await service.client.call(CREATE)).toMatchObject({ code: status.OK });

    expect(await service.database.count('payments')).toBe(2);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('may say that it was resent: such a method may be', async () => {
    service.handle({ createPayment: payAndComplete });

    const metadata = { 'grpc-previous-rpc-attempts': '2', 'x-envoy-attempt-count': '3' };
    expect(await service.client.call({ ...CREATE, metadata })).toMatchObject({ code: status.OK });
  });

  it('needs no transaction', async () => {
    service.handle({ createPayment: () => Promise.resolve({ payment: undefined }) });

    expect(await service.client.call(CREATE)).toMatchObject({ code: status.OK });
  });

  it('whose function swallowed a failed statement is not told as success', async () => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          const { scope } = attempt;
          await tx.$executeRaw`INSERT INTO payments (scope) VALUES (${scope})`.catch(() => undefined);
          return { payment: undefined };
        }),
    });

    expect(toldText(await service.client.call(CREATE))).toBe('internal error');
    expect(await service.database.count('payments')).toBe(0);
  });

  it('whose function left a statement behind is not told as success', async () => {
    service.handle({
      createPayment: (_, attempt) =>
        attempt.complete((tx) => {
          void tx.$executeRaw`DELETE FROM payments`;
          return Promise.resolve({ payment: undefined });
        }),
    });

    expect(toldText(await service.client.call(CREATE))).toBe('internal error');
  });

  it('whose handler swallowed the failure of its transaction is not told as success', async () => {
    service.handle({
      createPayment: (_, attempt) =>
        attempt.complete(() => Promise.reject(new Error('broken'))).catch(() => ({ payment: undefined })),
    });

    expect(toldText(await service.client.call(CREATE))).toBe('internal error');
  });

  it('whose handler did not wait for a transaction that failed is not told as success', async () => {
    service.handle({
      createPayment: (_, attempt) => {
        void attempt.complete(() => Promise.reject(new Error('nobody looks')));
        return Promise.resolve({ payment: undefined });
      },
    });

    expect(toldText(await service.client.call(CREATE))).toBe('internal error');
  });

  it('whose answer can not be serialized is INTERNAL', async () => {
    service.handle({ createPayment: () => Promise.resolve(undefined as never) });

    expect(toldText(await service.client.call(CREATE))).toBe('internal error');
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'fault', what: 'the handler failed' }));
  });
});

describe('a call without a key of a method of unknown level', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
    service.handle({ createPayment: payAndComplete });
  });

  afterEach(async () => {
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  afterAll(() => service.stop());

  const resent: readonly [string, string][] = [
    ['grpc-previous-rpc-attempts', '1'],
    ['x-envoy-attempt-count', '2'],
  ];

  it.each(resent)('that was resent on the way (%s: %s) is told that such retries are not safe', async (name, value) => {
    const answer = await service.client.call({ ...CREATE, metadata: { [name]: value } });

    expect(answer).toMatchObject({
      code: status.FAILED_PRECONDITION,
      error: { reason: 'KEYLESS_RETRY', domain: 'idempotency.v1' },
    });
    expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
  });

  it('that brings a key which is none is told what a key looks like, resent or not', async () => {
    const metadata = { 'request-id': 'order-1', 'x-envoy-attempt-count': '2' };
    const answer = await service.client.call({ ...CREATE, metadata });
    expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT, error: { reason: 'REQUEST_ID_MALFORMED' } });
  });

  const first: readonly [string, string][] = [
    ['grpc-previous-rpc-attempts', '0'],
    ['x-envoy-attempt-count', '1'],
    ['x-envoy-attempt-count', 'not a number'],
  ];

  it.each(first)('that was sent once (%s: %s) is told to send a key', async (name, value) => {
    const answer = await service.client.call({ ...CREATE, metadata: { [name]: value } });

    expect(answer).toMatchObject({
      code: status.INVALID_ARGUMENT,
      error: { reason: 'REQUEST_ID_MISSING', violations: [{ field: 'request-id' }] },
    });
  });
});

describe('a call of a method of unknown level that ignores keys', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { key: 'IGNORED' },
      principal: ({ metadata }) => (metadata.get('stranger').length > 0 ? undefined : 'account-1'),
    });
  });

  beforeEach(async () => {
    service.handle({ createPayment: payAndComplete });
    await service.database.rows('TRUNCATE payments');
  });

  afterAll(() => service.stop());

  it.each([
    [{ 'grpc-previous-rpc-attempts': '1' }],
    [{ 'x-envoy-attempt-count': '2' }],
    [{ 'x-envoy-attempt-count': '1, 2', 'request-id': '3f2b8c1e-5a6d-4e7f-8a9b-0c1d2e3f4a5b' }],
  ])('that was resent on the way is not run, whether it brings a key or not: %o', async (metadata) => {
    const answer = await service.client.call({ ...CREATE, metadata });

    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'KEYLESS_RETRY' } });
    expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    expect(answer.trailersOnly).toBe(true);
    expect(answer.details).toContain('takes no key');
    expect(await service.database.count('payments')).toBe(0);
    expect(service.events).toMatchObject([
      { type: 'admitted', outcome: 'keyless_retry' },
      { type: 'call', outcome: 'keyless_retry', reason: 'KEYLESS_RETRY', scope: 'account-1' },
    ]);
  });

  it('that was sent once runs, and nothing is told of it', async () => {
    expect((await service.client.call(CREATE)).code).toBe(status.OK);
    expect(await service.database.count('payments')).toBe(1);
    expect(service.events).toEqual([]);
  });

  it('shares nothing with another one: without a key, and with an empty one, each runs (case G3)', async () => {
    const metadata = (index: number) => (index % 2 === 0 ? { metadata: { 'request-id': '' } } : {});
    const calls = Array.from({ length: 10 }, (_, index) => service.client.call({ ...CREATE, ...metadata(index) }));
    const answers = await Promise.all(calls);
    expect(answers.map(({ code }) => code)).toEqual(Array(10).fill(status.OK));
    expect(new Set(answers.map(({ response }) => response?.payment.payment_id)).size).toBe(10);
    expect(await service.database.count('payments')).toBe(10);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('by a stranger is told nothing of what becomes of retries', async () => {
    const metadata = { stranger: 'yes', 'x-envoy-attempt-count': '2' };
    const answer = await service.client.call({ ...CREATE, metadata });
    expect(answer).toMatchObject({ code: status.UNAUTHENTICATED, error: { reason: 'PRINCIPAL_MISSING' } });
  });
});

describe.each([
  ['UNKNOWN', undefined, ['-1']],
  ['IDEMPOTENT', 1_000, ['1000']],
  ['NO_SIDE_EFFECTS', 1_000, ['1000']],
] as const)('a call without a key of level %s', (level, retryDelayMs, pushback) => {
  let proxy: CommitProxy;
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { level, enforcement: 'OBSERVE', key: 'REQUIRED' },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(async () => {
    await service.stop();
    proxy.close();
  });

  const expectAdvice = (answer: StockAnswer): void => {
    expect(answer).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'STORE_UNAVAILABLE' } });
    expect(answer.error.retryDelayMs).toBe(retryDelayMs);
    expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(pushback);
  };

  it('whose commit is unknown is told whether it may come again', async () => {
    service.handle({ createPayment: payAndComplete });
    const cut = proxy.on('COMMIT', 'cut after');

    expectAdvice(await service.client.call(CREATE));

    expect(cut.times()).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
  });

  it('whose handler met an outage is told so too', async () => {
    service.handle({ createPayment: () => Promise.reject(new Error('Connection terminated unexpectedly')) });
    expectAdvice(await service.client.call(CREATE));
  });
});
