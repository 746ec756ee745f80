import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { createLogger, logServerEvents } from '../../src/ops/logger';
import {
  type AttemptService,
  payAndComplete,
  type PaymentAttempt,
  recordPayment,
  startAttemptService,
  toldText,
} from '../support/attempt-service';
import { datedKey } from '../support/claim-requests';
import { paymentRequest } from '../support/payment-requests';

const HOUR_MS = 3_600_000;

describe('a method whose policy observes (design 4.1, enforcement OBSERVE)', () => {
  let service: AttemptService;
  let lines: Record<string, unknown>[];

  beforeAll(async () => {
    const logger = createLogger({
      level: 'info',
      destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    });
    service = await startAttemptService({ policy: { enforcement: 'OBSERVE' }, onEvent: logServerEvents(logger) });
  });

  beforeEach(async () => {
    lines = [];
    service.handle({ createPayment: payAndComplete });
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const admitted = () => service.events.filter((event) => event.type === 'admitted');

  test.each<[string, Readonly<Record<string, string | Buffer | readonly string[]>>, string]>([
    ['no key', {}, 'missing_key'],
    ['an empty key', { 'request-id': '' }, 'missing_key'],
    ['only the binary twin of a key', { 'request-id-bin': Buffer.from(randomUUID()) }, 'missing_key'],
    ['a key that is no UUID', { 'request-id': 'order-1' }, 'malformed_key'],
    ['two keys', { 'request-id': [randomUUID(), randomUUID()] }, 'malformed_key'],
  ])('counts a call with %s and lets it through, each time, without a record', async (_, metadata, outcome) => {
    for (let time = 1; time <= 2; time += 1) {
      const answer = await service.pay({ requestId: undefined, metadata });
      expect(answer).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-1' } } });
      expect(answer.trailers.get('idempotency-expires-at')).toEqual([]);
      expect(await service.database.count('payments')).toBe(time);
    }
    expect(await service.database.count('idempotency_record')).toBe(0);
    const seen = { type: 'admitted', path: '/payments.v1.PaymentsService/CreatePayment', outcome, observed: true };
    expect(admitted()).toEqual([seen, seen]);
    expect(lines.filter(({ msg }) => msg === 'keyed call')).toEqual(
      Array(2).fill(expect.objectContaining({ level: 'warn', outcome, observed: true, code: 'OK' })),
    );
  });

  it('protects a call with a good key as ever, and says nothing of observing', async () => {
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    const second = await service.pay({ requestId });
    expect(second.bytes).toEqual(first.bytes);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
    for (const event of service.events) expect(event).not.toHaveProperty('observed');
  });

  it('refuses all else that it would refuse: a mismatch, an expired or future key, a keyless resend', async () => {
    const requestId = randomUUID();
    await service.pay({ requestId });
    const refused = async (call: Parameters<AttemptService['pay']>[0]) => (await service.pay(call)).error.reason;

    expect(await refused({ requestId, request: paymentRequest({ order_id: 'order-2' }) })).toBe('REQUEST_ID_REUSED');
    expect(await refused({ requestId: datedKey(Date.now() - 49 * HOUR_MS) })).toBe('REQUEST_ID_EXPIRED');
    expect(await refused({ requestId: datedKey(Date.now() + HOUR_MS) })).toBe('REQUEST_ID_FROM_FUTURE');
    const resent = { 'grpc-previous-rpc-attempts': '1' };
    expect(await refused({ requestId: undefined, metadata: resent })).toBe('KEYLESS_RETRY');
    expect(await service.database.count('payments')).toBe(1);
  });

  it('does not run a call again that was resent with a key which is none: it protects as little as no key', async () => {
    const requestId = 'order-1';
    expect((await service.pay({ requestId, metadata: { 'x-envoy-attempt-count': '1' } })).code).toBe(status.OK);
    const resent = await service.pay({ requestId, metadata: { 'x-envoy-attempt-count': '2' } });
    expect(resent).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'KEYLESS_RETRY' } });
    expect(await service.database.count('payments')).toBe(1);
    expect(admitted().at(-1)).toEqual({
      ...{ type: 'admitted', path: '/payments.v1.PaymentsService/CreatePayment', outcome: 'keyless_retry' },
    });
  });

  it('runs complete as a plain transaction: rolled back when it throws, and refused when a statement was swallowed', async () => {
    const keyless = { requestId: undefined };
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          throw new StatusError(status.ABORTED, 'changed my mind');
        }),
    });
    expect(await service.pay(keyless)).toMatchObject({ code: status.ABORTED, details: 'changed my mind' });
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          const response = await recordPayment(tx, request, attempt);
          await tx.$executeRaw`INSERT INTO payments (scope) VALUES ('')`.catch(() => undefined);
          return response;
        }),
    });
    expect(toldText(await service.pay(keyless))).toBe('internal error');
    expect(await service.database.count('payments')).toBe(0);
  });

  test.each<[string, (attempt: PaymentAttempt) => unknown]>([
    ['effect', (attempt) => attempt.effect('charge', () => Promise.resolve('sent'))],
    ['phase', (attempt) => attempt.phase('draft', () => Promise.resolve('drafted'))],
    ['derivedKey', (attempt) => attempt.derivedKey('charge')],
  ])('refuses %s to a call without a claim, and says why', async (name, use) => {
    service.handle({
      createPayment: async (request, attempt) => {
        await use(attempt);
        return payAndComplete(request, attempt);
      },
    });
    expect(toldText(await service.pay({ requestId: undefined }))).toBe('internal error');
    const fault = service.events.find((event) => event.type === 'fault');
    expect(fault?.error).toBeInstanceOf(TypeError);
    expect(String(fault?.error)).toMatch(new RegExp(`^TypeError: ${name} .*: this call has no (claim|key)`));
    expect(await service.database.count('payments')).toBe(0);
  });

  it('keeps what a keyless call publishes in its line alone, and gives it a signal that never fires', async () => {
    let signal: AbortSignal | undefined;
    service.handle({
      createPayment: (request, attempt) => {
        signal = attempt.signal;
        attempt.publish({ resource: 'payments/1' });
        return payAndComplete(request, attempt);
      },
    });
    expect((await service.pay({ requestId: undefined })).code).toBe(status.OK);
    expect(signal?.aborted).toBe(false);
    expect(lines.find(({ msg }) => msg === 'keyed call')).toMatchObject({ 'published.resource': 'payments/1' });
    expect(await service.database.count('idempotency_record')).toBe(0);
  });
});
