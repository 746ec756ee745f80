import { randomUUID } from 'node:crypto';
import { logVerbosity, Metadata, setLogVerbosity, status } from '@grpc/grpc-js';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { type KeyFormat, readErrorDetails } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { datedKey } from '../support/claim-requests';
import { paymentRequest } from '../support/payment-requests';
import { rawCall } from '../support/raw-call';
import type { StockCall } from '../support/stock-client';
import { useService } from '../support/use-service';

const KEY = randomUUID();
const PATH = '/payments.v1.PaymentsService/CreatePayment';
const NIL = '00000000-0000-0000-0000-000000000000';
const MAX = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** One byte a character, as HTTP/2 sends it. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1');

describe('a key that cannot be used (design 4.2)', () => {
  const used = useService();

  // grpc-js prints what it drops, which is what these tests send.
  beforeAll(() => setLogVerbosity(logVerbosity.NONE));
  afterAll(() => setLogVerbosity(logVerbosity.ERROR));

  async function expectNothingHappened(): Promise<void> {
    expect(await used.database.count('idempotency_record')).toBe(0);
    expect(await used.database.count('payments')).toBe(0);
    expect(used.authorizations).toEqual([]);
  }

  test.each<[string, NonNullable<StockCall['metadata']>, string]>([
    ['is missing', {}, 'REQUEST_ID_MISSING'],
    ['is empty', { 'request-id': '' }, 'REQUEST_ID_MISSING'],
    ['came under a name that meshes make anew', { 'x-request-id': KEY }, 'REQUEST_ID_MISSING'],
    ['came only as its binary twin', { 'request-id-bin': Buffer.from(KEY) }, 'REQUEST_ID_MISSING'],
    ['has two values', { 'request-id': [KEY, randomUUID()] }, 'REQUEST_ID_MALFORMED'],
    ['has the same value twice', { 'request-id': [KEY, KEY] }, 'REQUEST_ID_MALFORMED'],
    ['has two values joined by a comma', { 'request-id': `${KEY},${randomUUID()}` }, 'REQUEST_ID_MALFORMED'],
    ['is no UUID', { 'request-id': 'order-1' }, 'REQUEST_ID_MALFORMED'],
    ['is a UUID without its hyphens', { 'request-id': KEY.replaceAll('-', '') }, 'REQUEST_ID_MALFORMED'],
    ['is a UUID in braces', { 'request-id': `{${KEY}}` }, 'REQUEST_ID_MALFORMED'],
    ['is the nil UUID', { 'request-id': NIL }, 'REQUEST_ID_MALFORMED'],
    ['is the max UUID', { 'request-id': MAX }, 'REQUEST_ID_MALFORMED'],
    ['is the max UUID in upper case', { 'request-id': MAX.toUpperCase() }, 'REQUEST_ID_MALFORMED'],
    ['is 70 KB long', { 'request-id': 'k'.repeat(70_000) }, 'REQUEST_ID_MALFORMED'],
  ])('that %s is refused for good, and nothing happens', async (_, metadata, reason) => {
    const answer = await used.client.call({ method: 'CreatePayment', request: paymentRequest(), metadata });

    expect(answer.code).toBe(status.INVALID_ARGUMENT);
    expect(answer.error).toMatchObject({ reason, domain: 'idempotency.v1', violations: [{ field: 'request-id' }] });
    expect(answer.error.violations[0]?.description).toMatch(/^expected /);
    expect(answer.error.retryDelayMs).toBeUndefined();
    expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    expect(answer.trailers.get('idempotency-expires-at')).toEqual([]);
    expect(answer.trailersOnly).toBe(true);
    expect(answer.details).not.toContain(KEY);
    await expectNothingHappened();
  });

  // Cases G1 and G3: the transport drops what it does not like, and a gRPC client would not even send it.
  test.each<[string, string]>([
    ['has a space before it', ` ${KEY}`],
    ['has a space after it', `${KEY} `],
    ['has spaces around it', ` ${KEY} `],
    ['is one space', ' '],
    ['ends in a letter of Latin-1', 'k\u00e9'],
    ['ends in a letter of UTF-8', utf8('k\u00e9')],
    ['has a tab in it', `${KEY.slice(0, 18)}\t${KEY.slice(18)}`],
    ['has a tab after it', `${KEY}\t`],
  ])('that %s is refused in one frame of bare HTTP/2, and nothing happens', async (_, key) => {
    const request = CreatePaymentRequest.encode(CreatePaymentRequest.fromPartial({ orderId: 'order-1' })).finish();
    const answer = await rawCall(used.service.grpcPort, PATH, [request], { 'request-id': key });

    expect(answer.headers['grpc-status']).toBe(String(status.INVALID_ARGUMENT));
    expect(answer.endedByHeaders).toBe(true);
    expect(answer.response).toBeUndefined();
    expect(answer.headers['grpc-retry-pushback-ms']).toBe('-1');
    const details = new Metadata();
    details.set(
      'grpc-status-details-bin',
      Buffer.from(answer.headers['grpc-status-details-bin']?.toString() ?? '', 'base64'),
    );
    expect(readErrorDetails(details).reason).toMatch(/^REQUEST_ID_(MISSING|MALFORMED)$/);
    await expectNothingHappened();
  });

  it('is counted by its reason', async () => {
    const dated = async (days: number): Promise<string | undefined> => {
      const requestId = datedKey(Date.now() + days * 86_400_000);
      const answer = await used.client.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
      return answer.error.reason;
    };
    // Case I1: so long after that its record would be gone, had there been one.
    expect(await dated(-30)).toBe('REQUEST_ID_EXPIRED');
    expect(await dated(1)).toBe('REQUEST_ID_FROM_FUTURE');
    await expectNothingHappened();

    const metrics = await used.service.metrics();
    expect(metrics).toMatch(/^idempotency_requests_total\{.*outcome="expired_key"\} 1$/m);
    expect(metrics).toMatch(/^idempotency_requests_total\{.*outcome="future_key"\} 1$/m);
    expect(metrics).toMatch(/^idempotency_requests_total\{.*outcome="missing_key"\} [1-9]/m);
    expect(metrics).toMatch(/^idempotency_requests_total\{.*outcome="malformed_key"\} [1-9]/m);
    expect(metrics).toMatch(/^payments_created_total 0$/m);
  });
});

describe('a key in upper case', () => {
  const used = useService();

  it('is the same key as in lower case', async () => {
    const pay = { method: 'CreatePayment', request: paymentRequest() };
    const first = await used.client.call({ ...pay, requestId: KEY.toUpperCase() });
    const second = await used.client.call({ ...pay, requestId: KEY });

    expect([first.code, second.code]).toEqual([status.OK, status.OK]);
    expect(second.bytes).toEqual(first.bytes);
    expect(await used.database.count('payments')).toBe(1);
  });
});

describe.each<KeyFormat>(['UUID', 'UUID_V7', 'OPAQUE'])('a method whose keys are %s (design 4.2)', (keyFormat) => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({ policy: { keyFormat } });
    service.handle({ createPayment: payAndComplete });
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));
  afterAll(() => service.stop());

  const DATED = datedKey(Date.now());
  test.each<[string, string, readonly KeyFormat[]]>([
    ['a random UUID', KEY, ['UUID', 'OPAQUE']],
    ['a UUID of another version', 'c9a646d3-9c61-11ec-b909-0242ac120002', ['UUID', 'OPAQUE']],
    ['a UUIDv7', DATED, ['UUID', 'UUID_V7', 'OPAQUE']],
    ['a UUIDv7 in upper case', DATED.toUpperCase(), ['UUID', 'UUID_V7', 'OPAQUE']],
    ['a UUID of version 7 and a wrong variant', `${DATED.slice(0, 19)}c${DATED.slice(20)}`, ['UUID', 'OPAQUE']],
    ['16 printable characters', '!"#$%&()*+-./:;<', ['OPAQUE']],
    ['128 printable characters', 'x'.repeat(128), ['OPAQUE']],
    ['15 printable characters', 'x'.repeat(15), []],
    ['129 printable characters', 'x'.repeat(129), []],
    ['the nil UUID', NIL, []],
    ['the max UUID', MAX, []],
  ])('takes %s if its format allows, and each of its calls is then one request', async (_, requestId, formats) => {
    const [first, second] = [await service.pay({ requestId }), await service.pay({ requestId })];

    if (!formats.includes(keyFormat)) {
      for (const answer of [first, second]) {
        expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT, error: { reason: 'REQUEST_ID_MALFORMED' } });
      }
      expect(await service.database.count('payments')).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);
      return;
    }
    expect([first.code, second.code]).toEqual([status.OK, status.OK]);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
    // Dated or not is decided by the string alone, so that a policy change never moves a record.
    const [record] = await service.database.rows<{ dated: boolean }>(
      "SELECT bucket <> '1970-01-01' AS dated FROM idempotency_record",
    );
    expect(record?.dated).toBe(requestId.toLowerCase() === DATED);
  });
});

describe('a dated key (design 4.2)', () => {
  const HOUR_MS = 3_600_000;
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
    service.handle({ createPayment: payAndComplete });
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));
  afterAll(() => service.stop());

  it.each([-23 * HOUR_MS, 0, 4 * 60_000])('%d ms from now may be used first', async (offsetMs) => {
    const answer = await service.pay({ requestId: datedKey(Date.now() + offsetMs) });
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotency-expires-at')).toHaveLength(1);
  });

  it.each([
    [-25 * HOUR_MS, 'REQUEST_ID_EXPIRED', status.FAILED_PRECONDITION],
    [6 * 60_000, 'REQUEST_ID_FROM_FUTURE', status.INVALID_ARGUMENT],
  ])('%d ms from now may not: %s, and nothing happens', async (offsetMs, reason, code) => {
    const answer = await service.pay({ requestId: datedKey(Date.now() + offsetMs) });
    expect(answer).toMatchObject({ code, error: { reason } });
    expect(answer.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    expect(answer.trailers.get('idempotency-expires-at')).toEqual([]);
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });
});

describe('a call without a key (case G3)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService({ policy: { key: 'OPTIONAL', level: 'IDEMPOTENT' } });
    service.handle({ createPayment: payAndComplete });
  });

  afterAll(() => service.stop());

  it('of a method that may go without shares nothing with another one: each runs, and none is recorded', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => service.pay({ requestId: undefined })));
    expect(answers.map(({ code }) => code)).toEqual(Array(5).fill(status.OK));
    expect(new Set(answers.map(({ response }) => response?.payment.payment_id)).size).toBe(5);
    expect(await service.database.count('payments')).toBe(5);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });
});
