import { randomUUID } from 'node:crypto';
import { logVerbosity, Metadata, setLogVerbosity, status } from '@grpc/grpc-js';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { readErrorDetails } from '../../src/idempotency/index';
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

describe('a key that cannot be used', () => {
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
    const metrics = await used.service.metrics();
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
